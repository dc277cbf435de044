import { mkdirSync, type Stats, statSync } from "node:fs";
import { dirname } from "node:path";
import { exits, Failure } from "./exit.js";

/** Why the system refused something with a file, such as "permission denied". */
export function reasonOf(error: unknown): string {
  const { message } = error as NodeJS.ErrnoException;
  return /^E[A-Z]+: ([^,]+)/.exec(message)?.[1] ?? message;
}

/** Makes a folder, and those above it, for its owner alone. */
export function makeFolder(folder: string): void {
  try {
    make(folder);
  } catch (error) {
    throw new Failure(
      exits.usage,
      `${folder} cannot be made: ${reasonOf(error)}.`,
      "Name a folder that you may write.",
    );
  }
}

/** Below a file there is nothing. */
function lookAt(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOTDIR") return undefined;
    throw error;
  }
}

/** Node's recursive form never returns where the folder above exists and takes none, as in /proc. */
function make(folder: string): void {
  const found = lookAt(folder);
  if (found?.isDirectory()) return;
  if (found) throw new Error(`${folder} is a file`);
  if (dirname(folder) !== folder) make(dirname(folder));
  mkdirSync(folder, { mode: 0o700 });
}
