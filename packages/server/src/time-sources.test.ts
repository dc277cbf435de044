import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { inside } from "./testing/import-table-fixture.js";
import { files, packages, withoutComments } from "./testing/sources-fixture.js";

/** Calls that read the time or wait for it; methods such as a socket's `setTimeout` do not count. */
const timeSource =
  /(?<![\w.])(?:globalThis\.)?(?:set|clear)(?:Timeout|Interval)\b|\bperformance\b|\bhrtime\b|\bDate\.now\b|\bnew Date\(\)|\bAbortSignal\.timeout\b|import (?:\* as )?\w+ from "node:timers.*?"/g;
const timeSourcesOf = (source: string) => withoutComments(source).match(timeSource) ?? [];

describe("Time", () => {
  it("comes from clock.ts alone", () => {
    const others = files.filter((file) => inside(file, "server/src") && file !== "server/src/clock.ts");
    const found = others.flatMap((file) =>
      timeSourcesOf(readFileSync(join(packages, file), "utf8")).map((name) => `packages/${file}: ${name}`),
    );
    expect(found).toEqual([]);
  });

  it.each([
    "setTimeout(end, 5)",
    "globalThis.setInterval(look, 5)",
    'import { setTimeout as pause } from "node:timers/promises";',
    'import * as timers from "node:timers";',
    'import timers from "node:timers/promises";',
    "const at = performance.now();",
    "clock.read(Date.now)",
    "new Date().toISOString()",
    "AbortSignal.timeout(5)",
    "process.hrtime.bigint()",
  ])("is found in %s", (source) => {
    expect(timeSourcesOf(source)).toHaveLength(1);
  });

  it.each([
    "socket.setTimeout(0)",
    "new Date(row.at)",
    "// setTimeout(end)",
    'import { setImmediate } from "node:timers";',
  ])("is not found in %s", (source) => {
    expect(timeSourcesOf(source)).toEqual([]);
  });
});
