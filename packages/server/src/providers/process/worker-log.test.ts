import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { limits } from "../../limits.js";
import { WorkerLog } from "./worker-log.js";

let directory: string;
let path: string;
let log: WorkerLog;
beforeEach(() => {
  vi.useFakeTimers({ toFake: ["Date"], now: 1_790_000_000_000 });
  directory = mkdtempSync(join(tmpdir(), "millrace-log-"));
  path = join(directory, "worker.log");
  log = new WorkerLog(path);
});
afterEach(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
  rmSync(directory, { recursive: true });
});
const written = () => readFileSync(path, "utf8");

describe("A worker's log", () => {
  it("joins lines that come in pieces, each pipe by itself", () => {
    log.write("stdout", "one ");
    log.write("stderr", "oh");
    log.write("stdout", "line\ntwo");
    log.write("stderr", " no\n");
    log.close();
    expect(written()).toBe("one line\noh no\ntwo\n");
  });

  it("counts lines that repeat", () => {
    log.write("stdout", "a\na\na\nb\nb\n");
    log.close();
    expect(written()).toBe("a\n[the line before came 2 times more]\nb\n[the line before came 1 times more]\n");
  });

  it("counts what comes too fast, and goes on in the next second", () => {
    const lines = (from: number, count: number) => Array.from({ length: count }, (_, n) => `${from + n}\n`).join("");
    log.write("stdout", lines(0, limits.logLinesPerSecondMax + 500));
    vi.setSystemTime(Date.now() + 1_000);
    log.write("stdout", "later\n");
    log.close();
    const kept = written().trimEnd().split("\n");
    expect(kept).toHaveLength(limits.logLinesPerSecondMax + 2);
    expect(kept.slice(-2)).toEqual(["[500 more lines in that second]", "later"]);
  });

  it("tells how many lines it left out, also when none comes after them", () => {
    log.write("stdout", Array.from({ length: limits.logLinesPerSecondMax + 5 }, (_, n) => `${n}\n`).join(""));
    log.close();
    expect(written()).toContain("[5 more lines in that second]");
  });

  it("cuts lines that are too long, also such as never end", () => {
    log.write("stdout", `${"x".repeat(limits.logLineBytesMax + 5)}\n`);
    for (let n = 0; n < 100; n++) log.write("stderr", "y".repeat(10_000));
    log.close();
    for (const line of written().split("\n")) expect(line.length).toBeLessThanOrEqual(limits.logLineBytesMax);
  });

  it("keeps two files of a bounded size, whatever comes", () => {
    let second = 0;
    vi.spyOn(Date, "now").mockImplementation(() => second * 1_000);
    for (let n = 0; n < 1_500; n++) {
      if (n % 25 === 0) second++; // slower than the flood that is only counted
      log.write("stdout", `${n}${"x".repeat(limits.logLineBytesMax - 10)}\n`);
      if (n % 50 === 0) log.flush();
    }
    log.close();
    expect(readdirSync(directory).sort()).toEqual(["worker.log", "worker.log.1"]);
    for (const file of readdirSync(directory)) {
      expect(statSync(join(directory, file)).size).toBeLessThanOrEqual(limits.logFileBytesMax);
    }
  });

  it("remembers the last lines that say something, and what has no end yet", () => {
    log.write("stdout", Array.from({ length: 50 }, (_, n) => `line ${n}\n\n`).join(""));
    log.write("stderr", "and then");
    expect(log.tail().split("\n")).toEqual(["line 46", "line 47", "line 48", "line 49", "and then"]);
    log.write("stderr", "z".repeat(limits.logLineBytesMax));
    expect(log.tail().length).toBeLessThanOrEqual(limits.logTailBytes);
    log.close();
  });

  it("goes on in the file that is there", () => {
    log.write("stdout", "before\n");
    log.close();
    const next = new WorkerLog(path);
    next.write("stdout", "after\n");
    next.close();
    expect(written()).toBe("before\nafter\n");
  });
});
