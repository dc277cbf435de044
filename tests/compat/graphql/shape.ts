/** What a client selects of a value, and what it needs to find there. */
export type Shape =
  | { readonly kind: "text" | "int" | "number" | "flag" | "null" }
  | { readonly kind: "or null" | "list" | "list or none" | "empty" | "nothing"; readonly of: Shape }
  | { readonly kind: "object"; readonly fields: Readonly<Record<string, Shape>> };

export const text: Shape = { kind: "text" };
export const int: Shape = { kind: "int" };
export const number: Shape = { kind: "number" };
export const flag: Shape = { kind: "flag" };
/** A field without fields of its own that is always null. */
export const nullOnly: Shape = { kind: "null" };
export const orNull = (of: Shape): Shape => ({ kind: "or null", of });
/** A list with at least one entry: of an empty list no entry could be checked. */
export const list = (of: Shape): Shape => ({ kind: "list", of });
export const listOrNone = (of: Shape): Shape => ({ kind: "list or none", of });
/** A list that has no entries here. */
export const empty = (of: Shape): Shape => ({ kind: "empty", of });
/** An object that does not exist here: null. */
export const nothing = (of: Shape): Shape => ({ kind: "nothing", of });
/** An object; a field's name may carry arguments, as in `endpoint(id: $id)`. */
export const object = (fields: Readonly<Record<string, Shape>>): Shape => ({ kind: "object", fields });

/** Fields of one shape, by their names in one text. */
export const each = (names: string, shape: Shape): Record<string, Shape> =>
  Object.fromEntries(names.split(" ").map((name) => [name, shape]));
export const texts = (names: string): Record<string, Shape> => each(names, text);

/** The text that selects a shape; empty for a scalar. */
export function selection(shape: Shape): string {
  if ("of" in shape) return selection(shape.of);
  if (shape.kind !== "object") return "";
  return ` { ${Object.entries(shape.fields)
    .map(([name, of]) => name + selection(of))
    .join(" ")} }`;
}

const fits: Readonly<Record<string, (value: unknown) => boolean>> = {
  text: (value) => typeof value === "string",
  int: (value) => Number.isInteger(value),
  number: (value) => typeof value === "number",
  flag: (value) => typeof value === "boolean",
  null: (value) => value === null,
};

/** Where a value differs from a shape; empty if it does not. */
export function misfits(shape: Shape, value: unknown, path = "data"): string[] {
  const wrong = [`${path} is ${JSON.stringify(value)?.slice(0, 200)}, not ${shape.kind}`];
  if (shape.kind === "or null") return value === null ? [] : misfits(shape.of, value, path);
  if (shape.kind === "nothing") return value === null ? [] : wrong;
  if (shape.kind === "object") {
    if (typeof value !== "object" || value === null || Array.isArray(value)) return wrong;
    return Object.entries(shape.fields).flatMap(([name, of]) => {
      const bare = name.replace(/\(.*/s, "");
      return misfits(of, (value as Record<string, unknown>)[bare], `${path}.${bare}`);
    });
  }
  if (!("of" in shape)) return fits[shape.kind]?.(value) ? [] : wrong;
  if (!Array.isArray(value)) return wrong;
  if (shape.kind === "empty") return value.length === 0 ? [] : wrong;
  if (shape.kind === "list" && value.length === 0) return wrong;
  return value.flatMap((entry, n) => misfits(shape.of, entry, `${path}[${n}]`));
}
