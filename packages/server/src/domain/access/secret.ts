/** A secret without its value. */
export interface Secret {
  readonly no: number;
  readonly id: string;
  readonly ownerNo: number;
  /** Unique among its owner's. */
  readonly name: string;
  readonly description: string;
  readonly createdAt: number;
}

/** Where a variable's value holds a secret: `length` UTF-16 units from `at`. */
export interface HiddenSpan {
  readonly variable: string;
  readonly at: number;
  readonly length: number;
}

const reference = /\{\{\s*RUNPOD_SECRET_([\w-]+)\s*\}\}/g;

/** The names of the secrets that an environment refers to, as `{{ RUNPOD_SECRET_name }}`. */
export const secretsNamed = (env: Readonly<Record<string, string>>): string[] => [
  ...new Set(
    Object.values(env).flatMap((value) => Array.from(value.matchAll(reference), ([, name]) => name as string)),
  ),
];

/** How long an environment's values are, all together, with its secrets in place. */
export function lengthWithSecrets(env: Readonly<Record<string, string>>, values: ReadonlyMap<string, string>): number {
  let length = 0;
  for (const text of Object.values(env)) {
    length += text.length;
    for (const [found, name = ""] of text.matchAll(reference)) length += (values.get(name)?.length ?? 0) - found.length;
  }
  return length;
}

/**
 * An environment with the values of its secrets in place, and where they are. A value is inserted unchanged: text in it
 * that looks like a reference stays.
 */
export function withSecrets(
  env: Readonly<Record<string, string>>,
  values: ReadonlyMap<string, string>,
): { env: Record<string, string>; hidden: HiddenSpan[] } {
  const hidden: HiddenSpan[] = [];
  const filled = Object.entries(env).map(([variable, text]) => {
    let value = "";
    let end = 0;
    for (const found of text.matchAll(reference)) {
      const secret = values.get(found[1] as string) ?? "";
      value += text.slice(end, found.index);
      hidden.push({ variable, at: value.length, length: secret.length });
      value += secret;
      end = found.index + found[0].length;
    }
    return [variable, value + text.slice(end)] as const;
  });
  return { env: Object.fromEntries(filled), hidden };
}

/** The texts at these places of an environment. */
export const hiddenTexts = (env: Readonly<Record<string, string>>, hidden: readonly HiddenSpan[]): string[] =>
  hidden.map(({ variable, at, length }) => (env[variable] ?? "").slice(at, at + length));
