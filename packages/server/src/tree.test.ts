import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join, posix } from "node:path";
import { describe, expect, it } from "vitest";
import { importsOf, packages } from "./testing/sources-fixture.js";

const root = join(packages, "..");
const isMade = /^(node_modules|dist|out|__pycache__|\..*)$/;

/** Every file under a folder of the repository, of any kind, except those that are made there. */
function under(folder: string): string[] {
  return readdirSync(join(root, folder), { withFileTypes: true })
    .filter(({ name }) => !isMade.test(name))
    .flatMap((entry) => {
      const path = posix.join(folder, entry.name);
      return entry.isDirectory() ? under(path) : [path];
    });
}

const all = ["packages", "tests", "bench", "scripts"].flatMap(under);

/** What each module imports by a path, types included. */
const graph = new Map(
  all
    .filter((file) => /\.(m?ts|tsx|mjs)$/.test(file))
    .map((file) => {
      const own = importsOf(readFileSync(join(root, file), "utf8")).filter((named) => named.startsWith("."));
      return [file, own.map((named) => posix.join(posix.dirname(file), named).replace(/\.js$/, ".ts"))] as const;
    }),
);

/** The modules on a path from one back to itself; undefined if there is none. */
function cycleFrom(start: string): string[] | undefined {
  const before = new Map<string, string>();
  const left = [start];
  for (let file = left.pop(); file !== undefined; file = left.pop()) {
    for (const next of graph.get(file) ?? []) {
      if (next === start) {
        const way = [file];
        while (way[0] !== start) way.unshift(before.get(way[0] as string) as string);
        return way;
      }
      if (!before.has(next)) left.push(next);
      if (!before.has(next)) before.set(next, file);
    }
  }
  return undefined;
}

describe("The tree", () => {
  it("has no import cycles, types included", () => {
    const cycles = [...graph.keys()].map(cycleFrom).filter((cycle) => cycle !== undefined);
    expect(cycles).toEqual([]);
  });

  it("has no folder with thirty files or more, tests included", () => {
    const folders = new Map<string, number>();
    for (const file of all) folders.set(posix.dirname(file), (folders.get(posix.dirname(file)) ?? 0) + 1);
    expect(folders.size).toBeGreaterThan(50);
    expect([...folders].filter(([, count]) => count >= 30)).toEqual([]);
  });

  it("has no file of more than 300 lines, whatever its kind", () => {
    const lines = (file: string) => readFileSync(join(root, file), "utf8").split("\n").length - 1;
    expect(all.filter((file) => lines(file) > 300)).toEqual([]);
  });

  it("imports from a build only what its sources make: an earlier build may have left more", () => {
    const inBuilds = [...graph.values()].flat().filter((file) => file.includes("/dist/"));
    expect(inBuilds.length).toBeGreaterThan(5);
    expect(inBuilds.filter((file) => !existsSync(join(root, file.replace("/dist/", "/src/"))))).toEqual([]);
  });
});
