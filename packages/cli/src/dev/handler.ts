import { existsSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { basename, dirname, extname, join, resolve } from "node:path";
import { exits, Failure } from "../exit.js";

/** A handler's file, and how its workers start. */
export interface HandlerFile {
  readonly folder: string;
  readonly file: string;
  /** What its endpoint is called. */
  readonly name: string;
  readonly isPython: boolean;
}

/** The names that a server looks for in a folder. */
const usualNames = ["handler.ts", "handler.js", "handler.mjs", "handler.py"];

/** The handler that a path leads to: a folder that holds one, or its file. */
export function findHandler(given: string, from: string): HandlerFile {
  const path = resolve(from, given);
  const stats = statSync(path, { throwIfNoEntry: false });
  if (!stats) throw new Failure(exits.usage, `${given} does not exist.`);
  if (!stats.isDirectory()) return handlerFile(dirname(path), basename(path));
  const file = usualNames.find((name) => existsSync(join(path, name)));
  if (file !== undefined) return handlerFile(path, file);
  throw new Failure(
    exits.usage,
    `There is no ${usualNames.join(", ")} in ${given}: put one there, or name the handler's file.`,
  );
}

function handlerFile(folder: string, file: string): HandlerFile {
  const extension = extname(file);
  if (!/^\.(ts|js|mjs|py)$/.test(extension))
    throw new Failure(exits.usage, `${file} is no handler: it must be a .py, .ts, .js or .mjs file.`);
  const stem = basename(file, extension);
  return { folder, file, name: stem === "handler" ? basename(folder) : stem, isPython: extension === ".py" };
}

/** The command that starts its workers; empty if the server knows it by the file's name. */
export function startCommand({ folder, file, isPython }: HandlerFile, python = "python3"): string[] {
  if (isPython) return [python, "-u", file];
  if (usualNames.includes(file)) return [];
  return [process.execPath, createRequire(import.meta.url).resolve("@millrace/worker/run-handler"), join(folder, file)];
}
