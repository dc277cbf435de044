import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import type { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { exits, Failure } from "./exit.js";
import { reasonOf } from "./files.js";

export type Fields = Readonly<Record<string, unknown>>;

interface Reading {
  readonly folder: string;
  readonly stdin: Readable;
  /** What is to be changed. */
  readonly before?: Fields;
  /** Fields that hold a name or an id. */
  readonly names?: readonly string[];
}

/**
 * The fields that a command gives as `name=value`: a value is JSON if it can be, else text; `@file` is the text of a
 * file, and `-` that of standard input. `env.NAME=value` sets one name of an object, of which `before` has the others;
 * variables are always text, and so are names and what is kept secret. A single `@file.json` has all fields.
 */
export async function readFields(
  given: readonly string[],
  { folder, stdin, before = {}, names = [] }: Reading,
): Promise<Fields> {
  const [only = ""] = given;
  if (given.length === 1 && only.startsWith("@")) return objectIn(only.slice(1), fileText(folder, only.slice(1)));
  const fields: Record<string, unknown> = {};
  for (const each of given) {
    const [, name = "", inner, written = ""] = /^([A-Za-z]\w*)(?:\.([\w.-]+))?=(.*)$/s.exec(each) ?? [];
    if (name === "") throw new Failure(exits.usage, `"${each}" is no field: write name=value.`, "workersMax=3");
    const isName = names.includes(name) && written !== "null" && !written.startsWith("[");
    const isText = isName || texts.includes(name) || (name === "env" && !written.startsWith("{"));
    const value = await readValue(written, { isText, folder, stdin });
    if (inner === undefined) fields[name] = value;
    else fields[name] = { ...((fields[name] ?? before[name]) as object | undefined), [inner]: value };
  }
  return fields;
}

/** Fields that are text whatever they look like: a password of digits is no number. */
const texts = ["name", "description", "username", "password", "value"];

async function readValue(
  written: string,
  { isText, folder, stdin }: { isText: boolean; folder: string; stdin: Readable },
): Promise<unknown> {
  if (written === "-") return (await text(stdin)).trimEnd();
  if (written.startsWith("@")) return fileText(folder, written.slice(1)).trimEnd();
  if (isText) return written;
  try {
    return JSON.parse(written);
  } catch {
    return written;
  }
}

function fileText(folder: string, file: string): string {
  try {
    return readFileSync(resolve(folder, file), "utf8");
  } catch (error) {
    throw new Failure(exits.usage, `${file} cannot be read: ${reasonOf(error)}.`);
  }
}

function objectIn(file: string, written: string): Fields {
  try {
    const value: unknown = JSON.parse(written);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Fields;
  } catch (error) {
    throw new Failure(exits.usage, `${file} is not valid JSON: ${(error as Error).message}`);
  }
  throw new Failure(exits.usage, `${file} must hold a JSON object.`);
}
