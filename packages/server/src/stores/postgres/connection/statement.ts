import { named } from "../../tables/named.js";

/** A statement with named parameters; `with` returns what a connection's `query` takes. */
export interface NamedStatement<Name extends string> {
  readonly text: string;
  with(values: Readonly<Record<Name, unknown>>): [text: string, values: unknown[]];
}

/** `names` gives the parameters `:name` of the statement their numbers. */
export function statement<const Name extends string>(names: readonly Name[], text: string): NamedStatement<Name> {
  const numbered = named("$", names, text);
  return { text: numbered.text, with: (values) => [numbered.text, numbered.values(values)] };
}
