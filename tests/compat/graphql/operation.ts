import { type Shape, selection } from "./shape.js";

/** The objects of the server that operations name, by what they are for. */
export interface Made {
  readonly template: string;
  readonly spareTemplate: string;
  readonly spareTemplateName: string;
  /** It has a worker, a volume and an environment. */
  readonly endpoint: string;
  readonly spareEndpoint: string;
  readonly volume: string;
  readonly auth: string;
  readonly spareAuth: string;
  readonly secret: string;
  /** It runs. */
  readonly pod: string;
  readonly podToStop: string;
  readonly podToResume: string;
  readonly podToBid: string;
  readonly podToEnd: string;
}

/** An argument: its type as the client declares the variable, and its value. */
export type Argument = readonly [type: string, value: unknown];
export type Arguments = Readonly<Record<string, Argument>>;

/** One operation as a client sends it. */
export interface Operation {
  /** The clients that send it. */
  readonly by: string;
  readonly root: "query" | "mutation";
  readonly field: string;
  /** Arguments of the root field. */
  readonly args?: (made: Made) => Arguments;
  /** Variables that fields further down use. */
  readonly within?: (made: Made) => Arguments;
  /** Arguments are written into the text, as the Python client does. */
  readonly isLiteral?: boolean;
  readonly gives: Shape;
  /** Values that the reply must hold. */
  readonly holds?: (made: Made) => object;
  /** It is refused in these words; `gives` is what the client selects. */
  readonly refusal?: RegExp;
}

/** A word of an enum in a literal, which is written without quotes. */
export class Word {
  readonly name: string;
  constructor(name: string) {
    this.name = name;
  }
}

function literal(value: unknown): string {
  if (value instanceof Word) return value.name;
  if (Array.isArray(value)) return `[${value.map(literal).join(", ")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  return `{${Object.entries(value)
    .map(([name, each]) => `${name}: ${literal(each)}`)
    .join(", ")}}`;
}

/** The body that sends an operation. */
export function bodyOf({ root, field, args, within, isLiteral, gives }: Operation, made: Made) {
  const own = args?.(made) ?? {};
  const all = { ...own, ...within?.(made) };
  const value = (name: string) => (isLiteral ? literal(all[name]?.[1]) : `$${name}`);
  const given = Object.keys(own).map((name) => `${name}: ${value(name)}`);
  const inner = selection(gives).replace(/\$(\w+)/g, (_, name: string) => value(name));
  const call = `${field}${given.length > 0 ? `(${given.join(", ")})` : ""}${inner}`;
  if (isLiteral) return { query: `${root} { ${call} }` };
  const declared = Object.entries(all).map(([name, [type]]) => `$${name}: ${type}`);
  const head = declared.length > 0 ? `${root} (${declared.join(", ")})` : root;
  const variables = Object.fromEntries(Object.entries(all).map(([name, [, given]]) => [name, given]));
  return { query: `${head} { ${call} }`, variables };
}
