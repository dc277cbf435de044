/** A statement whose parameters have names, for a database that numbers them. */
export interface Named<Name extends string> {
  /** The statement as the database gets it. */
  readonly text: string;
  /** The values by number. */
  values(of: Readonly<Record<Name, unknown>>): unknown[];
}

/**
 * Numbers the parameters of a statement once: `:name` becomes `mark` (`$` or `?`) and the place of that name in `names`.
 * A cast such as `::bigint` is none.
 */
export function named<const Name extends string>(mark: string, names: readonly Name[], statement: string): Named<Name> {
  const found = new Set<string>();
  const text = statement.replaceAll(/(?<!:):([a-z]\w*)/gi, (_, name: Name) => {
    if (!names.includes(name)) throw new Error(`:${name} is not a parameter of ${statement}`);
    found.add(name);
    return `${mark}${names.indexOf(name) + 1}`;
  });
  const unused = names.filter((name) => !found.has(name));
  if (unused.length > 0) throw new Error(`${unused.join(", ")} not used by ${statement}`);
  return { text, values: (of) => names.map((name) => of[name]) };
}
