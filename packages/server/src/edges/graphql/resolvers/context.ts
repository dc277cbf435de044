import type { Endpoint } from "../../../domain/endpoints/endpoint.js";
import type { Template } from "../../../domain/endpoints/template.js";
import type { Volume } from "../../../domain/endpoints/volume.js";
import { invalid } from "../../../errors.js";
import type { Caller } from "../../../operations/access/change-as.js";
import { visibleEndpoints, visibleTemplates, visibleVolumes } from "../../../operations/access/visible.js";
import type { Parts } from "../../../operations/needs.js";
import type { Answer } from "./answer.js";

export interface GraphqlParts extends Parts {
  /** Under `/sdk`, deleting an endpoint sets its worker counts to 0 first. */
  readonly setToZero: boolean;
  /** Whether the catalog is answered without a key. */
  readonly publicCatalog?: boolean;
}

/** What the caller sees, looked for once per query: an alias costs nothing but text. */
export class Seen {
  readonly #parts: Parts;
  readonly #caller: Caller;
  #endpoints: Endpoint[] | undefined;
  #templates: Template[] | undefined;
  #volumes: Volume[] | undefined;

  constructor(parts: Parts, caller: Caller) {
    this.#parts = parts;
    this.#caller = caller;
  }

  get endpoints(): Endpoint[] {
    this.#endpoints ??= visibleEndpoints(this.#parts, this.#caller);
    return this.#endpoints;
  }
  get templates(): Template[] {
    this.#templates ??= visibleTemplates(this.#parts, this.#caller);
    return this.#templates;
  }
  get volumes(): Volume[] {
    this.#volumes ??= visibleVolumes(this.#parts, this.#caller);
    return this.#volumes;
  }
}

/** What resolvers receive besides their arguments. */
export interface Context {
  readonly parts: GraphqlParts;
  readonly caller: Caller;
  readonly answer: Answer;
  readonly seen: Seen;
}

/** An input object: what was sent of it. */
export type Fields = Record<string, unknown>;

/** The refusal of a mutation whose input is nullable, as clients declare it, and null. */
export const missingInput = () => invalid("'input' is required.");

interface Pair {
  readonly key: string;
  readonly value: string;
}

export const fromPairs = (pairs: readonly Pair[] | null | undefined) =>
  pairs && Object.fromEntries(pairs.map(({ key, value }) => [key, value]));

/** An environment as a list, made only if the query asks for it: it may be as long as any list. */
export const toPairs =
  (env: Readonly<Record<string, string>>) =>
  (_: unknown, { answer }: Context) =>
    answer.pairs(env);

/** The entries of a comma-separated text. */
export const entriesOf = (text: string | null | undefined) =>
  text
    ?.split(",")
    .map((part) => part.trim())
    .filter(Boolean);

/** The fields that were sent, under other names or in other forms; a field that was not sent stays absent. */
export const sent = (fields: Fields): Fields =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
