import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { configFolder, type Env } from "../contexts.js";

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

/** The code that was last deployed to each endpoint from here. */
export class DeployedCode {
  readonly #file: string;
  readonly #endpoint: string;

  constructor(env: Env, endpoint: string) {
    this.#file = join(configFolder(env), "deployed.json");
    this.#endpoint = endpoint;
  }

  is = (code: string): boolean => this.#all()[this.#endpoint] === code;

  keep(code: string): void {
    mkdirSync(dirname(this.#file), { recursive: true, mode: 0o700 });
    writeFileSync(this.#file, `${JSON.stringify({ ...this.#all(), [this.#endpoint]: code }, undefined, 2)}\n`);
  }

  #all(): Readonly<Record<string, string>> {
    try {
      return JSON.parse(readFileSync(this.#file, "utf8")) as Record<string, string>;
    } catch {
      return {}; // then workers are replaced once more than they need be
    }
  }
}
