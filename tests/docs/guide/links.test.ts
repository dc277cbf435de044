import { existsSync, readFileSync } from "node:fs";
import { dirname, join, posix } from "node:path";
import { describe, expect, it } from "vitest";
import { root } from "../../harness.js";
import { guidePages } from "./blocks.js";

/** Markdown with its code left out. */
const proseOf = (file: string) => readFileSync(join(root, file), "utf8").replaceAll(/^ *```[\s\S]*?^ *```/gm, "");

/** The identifiers of a file's headings, as code hosts and the guide make them. */
function headingsOf(file: string): Set<string> {
  const titles = [...proseOf(file).matchAll(/^#+ (.+)$/gm)].map(([, title = ""]) => title);
  const slug = (text: string) =>
    text
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, "")
      .trim()
      .replaceAll(/\s/g, "-");
  return new Set(titles.map(slug));
}

const fileOf = (page: string) => posix.join("docs/guide", `${page}.md`);
const files = [...guidePages.map(fileOf), "README.md", "CONTRIBUTING.md", "docs/architecture.md", "docs/promises.md"];

describe.each(files)("%s", (file) => {
  it("has only links that lead somewhere", () => {
    const wrong = [...proseOf(file).matchAll(/\]\(([^)\s]+)\)/g)]
      .map(([, href = ""]) => href)
      .filter((href) => !/^(https?:|\/)/.test(href))
      .filter((href) => {
        const [path = "", heading] = href.split("#");
        const target = path === "" ? file : posix.join(dirname(file), path);
        if (!existsSync(join(root, target))) return true;
        return heading !== undefined && target.endsWith(".md") && !headingsOf(target).has(heading);
      });
    expect(wrong).toEqual([]);
  });
});
