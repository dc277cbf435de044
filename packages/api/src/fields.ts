import Type from "typebox";

/** A text of bounded length. */
export const text = (description: string, options = {}) => Type.String({ description, maxLength: 10_000, ...options });
/** No control characters: names are shown in logs and on pages. */
export const visible = "^[^\\u0000-\\u001f\\u007f-\\u009f]*$";
/** The same of texts that may have several lines. */
export const visibleLines = "^[^\\u0000-\\u0008\\u000b\\u000c\\u000e-\\u001f\\u007f-\\u009f]*$";
/** A list of texts, bounded in both. */
export const list = (description: string, options = {}) =>
  Type.Array(Type.String({ maxLength: 1_000, ...options }), { description, maxItems: 100 });
/** One of some names. */
export const choice = <T extends readonly string[]>(names: T, description: string) =>
  Type.Union(
    names.map((name) => Type.Literal(name as T[number])),
    { description },
  );
/** `null` clears a field on modify, so every optional field of an update takes it. */
export const orNull = <T extends Type.TSchema>(schema: T) => Type.Optional(Type.Union([schema, Type.Null()]));

/** Names from a list, separated by commas, in a text. */
export const separated = (names: readonly string[]) => ({ pattern: `^(?:(?:${names.join("|")})?(?: *, *|$))*$` });

/** Environment variables. */
export const Env = Type.Record(Type.String(), Type.String({ maxLength: 131_072, pattern: "^[^\\u0000]*$" }), {
  description: "Environment variables.",
  propertyNames: { pattern: "^[A-Za-z_][A-Za-z0-9_.-]*$" },
});

/** A moment, RFC 3339. */
export const time = () => Type.String({ format: "date-time" });
/** A whole number of milliseconds. */
export const ms = (description: string) => Type.Optional(Type.Integer({ minimum: 0, description }));
