import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { limits } from "../../packages/server/src/limits/index.js";
import { root } from "../harness.js";
import { writtenPages } from "./guide/blocks.js";

const page = (name: string) => readFileSync(join(root, name), "utf8");

describe("a page that repeats figures from the code", () => {
  it("has the bounds of bodies in flight from the limits", () => {
    const figures = [...page("docs/decisions/0009-bytes-in-flight.md").matchAll(/(\d+) MiB/g)].map(([, mib]) =>
      Number(mib),
    );
    expect(figures).toEqual([limits.bodiesBytesMax / 2 ** 20, limits.wordsBytesMax / 2 ** 20]);
  });

  it("has the connections of a server to PostgreSQL from the limits", () => {
    const text = page("docs/guide/deployment.md").replaceAll("\n", " ");
    const [, most, list = ""] = /at most (\d+) connections: ([^.]+)\./.exec(text) ?? [];
    const parts = [...list.matchAll(/\d+/g)].map(([number]) => Number(number));
    const { readersMax, textReadersMax, tableReadersMax, ownReadersMax, writersMax } = limits;
    expect(parts).toEqual([readersMax, textReadersMax, tableReadersMax, ownReadersMax, writersMax, 2]);
    expect(Number(most)).toBe(parts.reduce((sum, part) => sum + part, 0));
  });

  it("has the cold start of README.md from the last run of the benchmarks, and its Node.js", () => {
    const [, major, whole, byHand] =
      /on Node\.js (\d+) .* took (\d+) ms .* by hand (\d+) ms/.exec(page("README.md").replaceAll("\n", " ")) ?? [];
    const results = page("bench/RESULTS.md");
    const row = results.split("\n").find((line) => /^\| cold +\| SQLite /.test(line)) ?? "";
    const medians = [...row.matchAll(/(\d+) ms \(/g)].map(([, ms]) => ms);
    expect([major, whole, byHand]).toEqual([/^- Node\.js v(\d+)/m.exec(results)?.[1], ...medians]);
  });

  it("has every page of the guide in README.md", () => {
    const readme = page("README.md");
    expect(writtenPages.filter((name) => !readme.includes(`(docs/guide/${name}.md)`))).toEqual([]);
  });

  it("lists each command once", () => {
    const commands = [...page("CONTRIBUTING.md").matchAll(/`(npm run [\w:]+)`/g)].map(([, command]) => command);
    expect(commands.length).toBeGreaterThan(5);
    expect(commands).toEqual([...new Set(commands)]);
  });
});
