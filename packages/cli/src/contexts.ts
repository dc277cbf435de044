import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { exits, Failure } from "./exit.js";
import { makeFolder, reasonOf } from "./files.js";

/** A server and a key for it. */
export interface Context {
  readonly url: string;
  readonly key: string;
}

/** The servers that this user works with, by name. */
export interface Contexts {
  readonly current?: string;
  readonly contexts: Readonly<Record<string, Context>>;
}

/** The environment that the command line is run in. */
export type Env = Readonly<Record<string, string | undefined>>;

/** Where the command line keeps what it knows of servers. */
export const configFolder = (env: Env): string =>
  env.MILLRACE_CONFIG_DIR ?? join(env.XDG_CONFIG_HOME ?? join(env.HOME ?? homedir(), ".config"), "millrace");

/** Where contexts are kept; readable by their user alone, for they hold keys. */
export const contextsFile = (env: Env): string => join(configFolder(env), "contexts.json");

/** The contexts that are kept; none if there is no file yet. */
export function readContexts(env: Env): Contexts {
  const file = contextsFile(env);
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return { contexts: {} };
    throw new Failure(exits.failed, `${file} cannot be read: ${reasonOf(error)}.`, "MILLRACE_CONFIG_DIR=FOLDER");
  }
  try {
    const { current, contexts = {} } = JSON.parse(text) as Partial<Contexts>;
    return { contexts, ...(current === undefined ? {} : { current }) };
  } catch {
    throw new Failure(exits.failed, `${file} is not valid JSON.`, `rm ${file}, then millrace context add …`);
  }
}

/** Keeps contexts: the new file replaces the old one as a whole. */
export function writeContexts(env: Env, contexts: Contexts): void {
  const file = contextsFile(env);
  makeFolder(dirname(file));
  try {
    writeFileSync(`${file}.new`, `${JSON.stringify(contexts, undefined, 2)}\n`, { mode: 0o600 });
    renameSync(`${file}.new`, file);
  } catch (error) {
    throw new Failure(exits.failed, `${file} cannot be written: ${reasonOf(error)}.`, "MILLRACE_CONFIG_DIR=FOLDER");
  }
}
