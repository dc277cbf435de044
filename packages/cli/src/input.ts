import { readFile } from "node:fs/promises";
import type { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { parseExactly } from "./exact-json.js";
import { exits, Failure } from "./exit.js";
import { reasonOf } from "./files.js";

/** A job's input: JSON as it stands, `@file`, or `-` for standard input. It must be an object. */
export async function readInput(given: string, stdin: Readable): Promise<object> {
  const source = given === "-" ? "Standard input" : given.startsWith("@") ? given.slice(1) : "The input";
  let written: string;
  try {
    written =
      given === "-" ? await text(stdin) : given.startsWith("@") ? await readFile(given.slice(1), "utf8") : given;
  } catch (error) {
    throw new Failure(
      exits.usage,
      `${source} cannot be read: ${reasonOf(error)}.`,
      `'{"text":"hello"}', @file.json or -`,
    );
  }
  let value: unknown;
  try {
    value = parseExactly(written);
  } catch (error) {
    throw new Failure(
      exits.usage,
      `${source} is not valid JSON: ${(error as Error).message}`,
      `'{"text":"hello"}', @file.json or -`,
    );
  }
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value;
  throw new Failure(exits.usage, `${source} must be a JSON object, such as {"text":"hello"}.`);
}
