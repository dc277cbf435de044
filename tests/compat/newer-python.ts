import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { root } from "../harness.js";

/** The interpreter of the Python environment with version 2 of the stock package and with flash. */
export const newerPython = (): string => interpreter("MILLRACE_TEST_NEWER_VENV", "newer-venv", "runpod 2");

/** The interpreter of the Python environment with LangChain. */
export const pythonWithLangChain = (): string =>
  interpreter("MILLRACE_TEST_MACHINE_VENV", "machine-venv", "langchain-runpod");

function interpreter(variable: string, usual: string, what: string): string {
  const dir = process.env[variable] ?? join(root, ".cache", usual);
  const path = join(dir, "bin/python");
  if (existsSync(path)) return path;
  throw new Error(`There is no Python environment in ${dir}: set ${variable} to one with ${what}.`);
}

/** Runs a script of `tests/compat/scripts`; resolves with the JSON of its last line. */
export async function runScript(
  python: string,
  name: string,
  { env, words = [] }: { readonly env: Record<string, string>; readonly words?: readonly string[] },
  // biome-ignore lint/suspicious/noExplicitAny: tests check its shape
): Promise<any> {
  const script = join(import.meta.dirname, "scripts", `${name}.py`);
  const { stdout } = await promisify(execFile)(python, [script, ...words], {
    env: { ...process.env, ...env },
    maxBuffer: 20_000_000,
  });
  return JSON.parse(stdout.trim().split("\n").at(-1) ?? "");
}
