import { existsSync } from "node:fs";
import { join, relative } from "node:path";
import { watch } from "chokidar";

/** Editors write a file in several steps: this long without another one, it is done. */
const settledMs = 100;

/** What nobody edits by hand, or what running programs write. */
const isIgnored = (path: string): boolean =>
  path
    .split("/")
    .some((name) => /^\.(?!env(\.|$))[^.]|^(node_modules|__pycache__)$|~$|\.(pyc|swp|tmp|log)$/.test(name));

export interface FolderWatch {
  /**
   * Calls `listener` with the files that have changed since the watch began, by their paths in the folder, once nothing
   * more is being written.
   */
  onChange(listener: (files: readonly string[]) => void): void;
  close(): void;
}

/** Watches a folder; resolves once no change to it is missed. `onTrouble` hears why changes can be missed after all. */
export async function watchFolder(folder: string, onTrouble: (error: Error) => void): Promise<FolderWatch> {
  /** The handler's files, without those that an editor makes and removes again. */
  const known = new Set<string>();
  const changed = new Set<string>();
  let listener: ((files: readonly string[]) => void) | undefined;
  let timer: NodeJS.Timeout | undefined;
  const isThere = (file: string) => existsSync(join(folder, file));
  const tell = () => {
    if (!listener) return;
    const files = [...changed].filter((file) => known.has(file) || isThere(file)).sort();
    changed.clear();
    for (const file of files) if (isThere(file)) known.add(file);
    if (files.length > 0) listener(files);
  };
  const tellSoon = () => {
    clearTimeout(timer);
    timer = setTimeout(tell, settledMs);
  };
  let isReady = false;
  const watcher = watch(folder, {
    ignored: (path) => isIgnored(relative(folder, path)),
    persistent: false, // a start that fails ends
  });
  watcher.on("error", (error) => onTrouble(error as Error));
  watcher.on("all", (event, path) => {
    const file = relative(folder, path);
    if (!isReady && event === "add") known.add(file);
    else if (event === "add" || event === "change" || event === "unlink") {
      changed.add(file);
      tellSoon();
    }
  });
  await new Promise<void>((ready) => watcher.once("ready", ready));
  isReady = true;
  return {
    onChange(heard) {
      listener = heard;
      tellSoon();
    },
    close() {
      clearTimeout(timer);
      void watcher.close();
    },
  };
}

/** Whether a file is part of the program, rather than something that it reads or writes. */
export const isCode = (file: string): boolean =>
  /\.(py|pyi|[cm]?[jt]s|[jt]sx)$|(^|\/)(requirements\.txt|pyproject\.toml|package\.json|\.env[.\w]*)$/.test(file);

/** Changes of a file that is no code, within this time, by which it is known to be written by a program. */
const noiseMs = 10_000;
const noiseFrom = 4;

/** Tells people's changes from those of running programs, which would replace the worker for ever. */
export class Noise {
  readonly #changes = new Map<string, number[]>();
  readonly #noisy = new Set<string>();

  /** Of these files the ones that count, and those that count no more from now on. */
  sift(
    files: readonly string[],
    now: number,
  ): { readonly heard: readonly string[]; readonly silenced: readonly string[] } {
    const silenced: string[] = [];
    const heard = files.filter((file) => {
      if (isCode(file)) return true;
      if (this.#noisy.has(file)) return false;
      const changes = [...(this.#changes.get(file) ?? []).filter((at) => at > now - noiseMs), now];
      this.#changes.set(file, changes);
      if (changes.length < noiseFrom) return true;
      this.#noisy.add(file);
      silenced.push(file);
      return false;
    });
    return { heard, silenced };
  }
}

/** Files for people: `handler.py`, or `handler.py and 3 more`. */
export const filesInWords = (files: readonly string[]): string =>
  `${files[0] ?? "a file"}${files.length > 1 ? ` and ${files.length - 1} more` : ""}`;
