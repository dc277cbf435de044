import { harmless } from "../output/plain.js";
import type { Column } from "../output/table.js";
import type { Terminal } from "../output/terminal.js";
import type { Resource } from "./resources.js";

/** What replies show beside a resource, and where else it can be read. */
const shownBeside: Readonly<Record<string, (resource: Resource) => string>> = {
  key: ({ isBootstrap }) =>
    isBootstrap
      ? "It is also in the file api-key of the server's data directory. Contexts that hold the old key need it."
      : "Keep it now: it is not shown again.",
  webhookSecret: () =>
    "It signs the user's webhooks. From now on only the user's own keys show it: GET /v1/webhooks/secret",
};

/** A new or changed resource for people: its row, the secret in it, and what to do next. */
export function answerText(
  terminal: Terminal,
  columns: readonly Column<Resource>[],
  resource: Resource,
  next: readonly string[] = [],
): string {
  const beside = Object.entries(shownBeside).filter(([field]) => field in resource);
  return [
    terminal.tableText([resource], columns),
    ...beside.map(([field, words]) => `\n${field}  ${resource[field]}\n${words(resource)}`),
    ...(next.length === 0 ? [] : ["", ...next.map((line) => `  ${line}`)]),
  ].join("\n");
}

/** All fields of a resource, a line for each; those of an object as in `env.LEVEL`, which is how they are changed. */
export function fieldsText(terminal: Terminal, resource: Resource): string {
  const rows = rowsOf(resource);
  const width = Math.max(...rows.map(([field]) => field.length));
  const gap = " ".repeat(width + 2);
  return rows
    .map(([field, value]) => {
      const words = harmless(value).replaceAll("\n", `\n${gap}`);
      return `${terminal.styled("dim", field.padEnd(width))}  ${words}`.trimEnd();
    })
    .join("\n");
}

function rowsOf(value: object, before = ""): [field: string, value: string][] {
  return Object.entries(value).flatMap(([field, inner]): [string, string][] => {
    const name = `${before}${field}`;
    const isObject = typeof inner === "object" && inner !== null && !Array.isArray(inner);
    if (isObject && Object.keys(inner).length > 0) return rowsOf(inner, `${name}.`);
    return [[name, isObject ? nothing : textOf(inner)]];
  });
}

const nothing = "–";

function textOf(value: unknown): string {
  if (value === null || value === "") return nothing;
  if (!Array.isArray(value)) return String(value);
  return value.map((each) => (typeof each === "object" ? JSON.stringify(each) : String(each))).join(", ") || nothing;
}
