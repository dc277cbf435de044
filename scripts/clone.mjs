// This clone: where its parts are, and what a script says when it cannot go on. Runs before anything is installed, so
// it imports only `node:`.
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/** The repository's root. */
export const root = dirname(dirname(fileURLToPath(import.meta.url)));
/** Files made here, which may be deleted at any time. */
export const cache = join(root, ".cache");
/** Where npm puts the commands of installed packages. */
export const bin = join(root, "node_modules", ".bin");

/** One sentence for the reader, and the output of the command that failed. */
export class SetUpFailure extends Error {
  constructor(sentence, output = "") {
    super(sentence);
    this.output = output;
  }

  print() {
    console.error([this.message, this.output.trimEnd()].filter(Boolean).join("\n"));
  }
}

/** A file's text, or undefined if it does not exist. */
export function readText(path) {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}
