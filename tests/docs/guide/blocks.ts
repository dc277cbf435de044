import { readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "../../harness.js";

/**
 * A block of code on a page. The words after its language say what it is for; readers see only `file`:
 *
 * - `file=PATH`: it is written there before the next command runs.
 * - `background`: the command goes on while the next ones run; `until=TEXT`: they wait for this text in its output.
 * - `shows=TEXT`: it is run until it prints this.
 * - `stops`: like Ctrl-C in the other terminal, it first ends what goes on in the background.
 * - `output`: what the command above prints; `…` stands for anything within a line.
 * - `test=FILE`: that test runs it, because it needs more than a shell.
 * - `way=NAME`: it is part of one of the page's ways to the same end, of which a test follows one.
 * - `hardware`: it needs a GPU or changes the machine: only its syntax and its options are checked.
 */
export interface Block {
  readonly language: string;
  readonly words: Readonly<Record<string, string>>;
  readonly text: string;
  /** The line of its first line, from 1. */
  readonly line: number;
}

export const guidePages: string[] = (
  JSON.parse(readFileSync(join(root, "docs/guide/contents.json"), "utf8")) as { pages: string[] }[]
).flatMap(({ pages }) => pages);

/** Those that people write; the others are generated from the code. */
export const writtenPages = guidePages.filter((page) => !page.startsWith("../"));

/** The blocks of a page of the guide. */
export const blocksOf = (page: string): Block[] => blocksIn(`docs/guide/${page}.md`);

/** The blocks of a file, in order. */
export function blocksIn(file: string): Block[] {
  const blocks: Block[] = [];
  let open: { indent: string; info: string; line: number; lines: string[] } | undefined;
  for (const [at, line] of readFileSync(join(root, file), "utf8").split("\n").entries()) {
    const [, indent = "", info] = /^( *)```(.*)$/.exec(line) ?? [];
    if (open && info === "") {
      const [language = "", ...words] = open.info.split(/\s+/);
      const pairs = words.map((word) => word.split(/=(.*)/s)).map(([name = "", value = ""]) => [name, value]);
      blocks.push({ language, words: Object.fromEntries(pairs), text: open.lines.join("\n"), line: open.line });
      open = undefined;
    } else if (open) open.lines.push(line.slice(open.indent.length));
    else if (info !== undefined) open = { indent, info, line: at + 2, lines: [] };
  }
  if (open) throw new Error(`${file}: the block of line ${open.line} does not end`);
  return blocks;
}
