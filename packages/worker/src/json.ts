import { limits } from "./limits.js";

/** Converts a value to JSON text; `undefined` becomes null. Throws an Error that says what cannot be converted. */
export function toJson(value: unknown, what: string): string {
  if (value === undefined) return "null";
  let text: string | undefined;
  try {
    text = JSON.stringify(value);
  } catch (error) {
    const [reason] = (error instanceof Error ? error.message : String(error)).split("\n");
    throw new Error(`${what} can't be written as JSON: ${reason}`, { cause: error });
  }
  if (text === undefined) throw new Error(`${what} can't be written as JSON: it is a ${typeof value}`);
  return text;
}

/** The frames of this package say nothing to who wrote the handler. */
const ownFiles = import.meta.url.slice(0, import.meta.url.lastIndexOf("/") + 1);

/** What a user reads of a thrown value: name and message, then the stack, up to 4 KB. */
export function readableError(thrown: unknown): string {
  if (typeof thrown === "string") return cut(thrown || "the handler threw an empty string");
  if (!(thrown instanceof Error)) return cut(`the handler threw ${textOf(thrown)}`);
  const head = thrown.message ? `${thrown.name}: ${thrown.message}` : thrown.name;
  const isTheirs = (line: string) => /^\s+at (?!.*node:internal)/.test(line) && !line.includes(ownFiles);
  const frames = (thrown.stack ?? "").split("\n").filter(isTheirs);
  return cut([head, ...frames].join("\n"));
}

function textOf(value: unknown): string {
  try {
    return JSON.stringify(value) ?? String(value);
  } catch {
    return String(value);
  }
}

function cut(text: string): string {
  const bytes = Buffer.from(text, "utf8");
  if (bytes.length <= limits.errorMaxBytes) return text;
  // A character cut in half decodes as U+FFFD: leave it out.
  return `${bytes
    .subarray(0, limits.errorMaxBytes - 3)
    .toString("utf8")
    .replace(/\uFFFD+$/, "")}…`;
}
