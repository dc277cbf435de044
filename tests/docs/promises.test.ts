import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { root } from "../harness.js";

const page = readFileSync(join(root, "docs/promises.md"), "utf8");
const [promises, traps] = page.split("## The worker protocol's traps") as [string, string];

/** The folders in which a path of the page's first table may lie: the root, or the server's sources. */
const places = ["", "packages/server/src"];
const exists = (name: string) => places.some((place) => existsSync(join(root, place, name)));

/** The files in a line and, for each, the titles that follow it. */
function heldBy(line: string): { file: string; titles: string[] }[] {
  return line
    .split(/`((?:tests|packages)\/[\w./-]+\.ts)`: /)
    .slice(1)
    .reduce<{ file: string; titles: string[] }[]>((found, part, at) => {
      if (at % 2 === 0) found.push({ file: part, titles: [] });
      else found.at(-1)!.titles.push(...[...part.matchAll(/"((?:[^"])+)"(?:, |; |$)/g)].map(([, title]) => title!));
      return found;
    }, []);
}

describe("docs/promises.md", () => {
  it("names only existing test files", () => {
    const named = [...promises.matchAll(/`((?:[\w-]+\/)*[\w-]+(?:\.test)?\.ts|tests\/[\w/-]+)`/g)].map(
      ([, name]) => name!,
    );
    expect(named.length).toBeGreaterThan(15);
    expect(named.filter((name) => !exists(name))).toEqual([]);
  });

  const lines = traps.split("\n").filter((line) => line.startsWith("- "));
  it("has a test for every trap", () => {
    expect(lines.length).toBeGreaterThan(35);
    expect(lines.filter((line) => heldBy(line).flatMap(({ titles }) => titles).length === 0)).toEqual([]);
  });

  it.each(lines)("%s", (line) => {
    for (const { file, titles } of heldBy(line)) {
      const source = readFileSync(join(root, file), "utf8");
      for (const title of titles) {
        const written = [`"${title}"`, `'${title}'`, `\`${title}\``];
        expect(
          written.some((text) => source.includes(text)),
          `${file} has no test "${title}"`,
        ).toBe(true);
      }
    }
  });
});
