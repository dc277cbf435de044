import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { root } from "../../harness.js";

/** A program of a Python environment: the one that a variable names, or the usual one under `.cache`. */
export function programOf(variable: string, usual: string, name: string, what: string): string {
  const path = join(process.env[variable] ?? join(root, ".cache", usual), "bin", name);
  if (existsSync(path)) return path;
  throw new Error(`There is no ${path}: set ${variable} to a Python environment with ${what}.`);
}

/** Runs a script of `tests/compat/scripts`; resolves with the JSON of its last line. */
export async function runScript(
  python: string,
  name: string,
  { env, words = [] }: { readonly env: Record<string, string>; readonly words?: readonly string[] },
  // biome-ignore lint/suspicious/noExplicitAny: tests check its shape
): Promise<any> {
  const script = join(import.meta.dirname, "../scripts", `${name}.py`);
  const { stdout } = await promisify(execFile)(python, [script, ...words], {
    env: { ...process.env, ...env },
    maxBuffer: 20_000_000,
  });
  return JSON.parse(stdout.trim().split("\n").at(-1) ?? "");
}
