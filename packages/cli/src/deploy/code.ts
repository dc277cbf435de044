import { createHash } from "node:crypto";
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";

const filesMost = 20_000;
/** What is installed or made from the rest. */
const isLeftOut = (name: string): boolean => /^\.|^(node_modules|__pycache__)$/.test(name);

/** Tells whether the code in a folder is still the same: from its files' names, sizes and times. */
export function codeIn(folder: string): string {
  const hash = createHash("sha256");
  let left = filesMost;
  const add = (path: string) => {
    for (const entry of readdirSync(join(folder, path), { withFileTypes: true }).sort(byName)) {
      if (isLeftOut(entry.name) || --left < 0) continue;
      const at = join(path, entry.name);
      if (entry.isDirectory()) add(at);
      const stats = entry.isFile() ? statSync(join(folder, at), { throwIfNoEntry: false }) : undefined;
      if (stats) hash.update(`${at}\0${stats.size}\0${stats.mtimeMs}\0`);
    }
  };
  add("");
  return hash.digest("hex");
}

const byName = (one: { name: string }, other: { name: string }): number => (one.name < other.name ? -1 : 1);
