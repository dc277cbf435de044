import { existsSync } from "node:fs";
import { join, relative } from "node:path";
import { watch } from "chokidar";

/** Editors write a file in several steps: this long without another one, it is done. */
const settledMs = 100;

/** What nobody edits by hand, or what running programs write. */
const isIgnored = (path: string): boolean =>
  path.split("/").some((name) => /^\.[^.]|^(node_modules|__pycache__)$|~$|\.(pyc|swp|tmp)$/.test(name));

/** Calls `onChange` with the files that have changed, by their paths in the folder, once nothing more is being written. */
export function watchFolder(folder: string, onChange: (files: readonly string[]) => void): { close(): void } {
  /** The handler's files, without those that an editor makes and removes again. */
  const known = new Set<string>();
  const changed = new Set<string>();
  let timer: NodeJS.Timeout | undefined;
  const tell = () => {
    const isThere = (file: string) => existsSync(join(folder, file));
    const files = [...changed].filter((file) => known.has(file) || isThere(file)).sort();
    changed.clear();
    for (const file of files) if (isThere(file)) known.add(file);
    if (files.length > 0) onChange(files);
  };
  let isReady = false;
  const watcher = watch(folder, { ignored: (path) => isIgnored(relative(folder, path)) });
  watcher.on("ready", () => {
    isReady = true;
  });
  watcher.on("all", (event, path) => {
    const file = relative(folder, path);
    if (!isReady && event === "add") known.add(file);
    if (!isReady || !["add", "change", "unlink"].includes(event)) return;
    changed.add(file);
    clearTimeout(timer);
    timer = setTimeout(tell, settledMs);
  });
  return {
    close() {
      clearTimeout(timer);
      void watcher.close();
    },
  };
}

/** Files for people: `handler.py`, or `handler.py and 3 more`. */
export const filesInWords = (files: readonly string[]): string =>
  `${files[0] ?? "a file"}${files.length > 1 ? ` and ${files.length - 1} more` : ""}`;
