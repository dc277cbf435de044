import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

/** What runs here: the version, and the commit that it was built from if that is known. */
export interface About {
  readonly version: string;
  readonly commit: string | undefined;
}

/** `told`: the commit, as images are told it, which have no repository. A package brings it in a file. */
export function readAbout(told: string | undefined): About {
  const { version } = createRequire(import.meta.url)("../package.json") as { version: string };
  const root = join(import.meta.dirname, "../../..");
  return { version, commit: shortened(told || commitOf(join(root, ".git")) || packed()) };
}

/** The commit that a clone is at. */
function commitOf(repository: string): string | undefined {
  const head = textOf(join(repository, "HEAD"));
  const name = /^ref: (\S+)$/.exec(head ?? "")?.[1];
  if (name === undefined) return head;
  const packed = textOf(join(repository, "packed-refs"));
  return textOf(join(repository, name)) ?? packed?.split("\n").find((line) => line.endsWith(` ${name}`));
}

/** The commit that an installed package was made from. */
const packed = (): string | undefined => textOf(join(import.meta.dirname, "commit.json"))?.replaceAll('"', "");

/** The first digits of a commit's hash, as people write it. */
const shortened = (text: string | undefined): string | undefined =>
  /^[0-9a-f]{9,40}\b/.exec(text ?? "")?.[0].slice(0, 9);

function textOf(file: string): string | undefined {
  try {
    return readFileSync(file, "utf8").trim();
  } catch {
    return undefined;
  }
}
