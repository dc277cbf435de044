import Type from "typebox";

/** A text of bounded length. */
export const text = (description: string, options = {}) => Type.String({ description, maxLength: 10_000, ...options });
/** No control characters, because names are shown in logs and on pages. */
export const visible = "^[^\\u0000-\\u001f\\u007f-\\u009f]*$";
/** The same for texts that may have several lines. */
export const visibleLines = "^[^\\u0000-\\u0008\\u000b\\u000c\\u000e-\\u001f\\u007f-\\u009f]*$";
/** A list of texts, with both its length and theirs bounded. */
export const list = (description: string, options = {}) =>
  Type.Array(Type.String({ maxLength: 1_000, ...options }), { description, maxItems: 100 });
/** One of several names. */
export const choice = <T extends readonly string[]>(names: T, description: string) =>
  Type.Unsafe<T[number]>(
    Type.Union(
      names.map((name) => Type.Literal(name)),
      { description },
    ),
  );
/** In an update `null` clears a field, so every optional field accepts it. */
export const orNull = <T extends Type.TSchema>(schema: T) => Type.Optional(Type.Union([schema, Type.Null()]));

/** A field that is taken and has no effect: replies name it in this header, like one that nothing knows. */
export const ignoredHeader = "x-millrace-ignored";
export const ignored = <T extends Type.TSchema>(schema: T) =>
  Type.Optional(Type.Union([schema, Type.Null()], { [ignoredHeader]: true }));

/** Environment variables. */
export const Env = Type.Record(
  Type.String(),
  Type.String({
    maxLength: 131_072,
    pattern: "^[^\\u0000]*$",
    title: "text of at most 131072 characters without NUL",
  }),
  {
    description: "Environment variables.",
    propertyNames: {
      pattern: "^[A-Za-z_][A-Za-z0-9_.-]*$",
      title: "variables whose names begin with a letter or _ and go on with letters, digits, _, . and -",
    },
  },
);

/** A time in RFC 3339 format. */
export const time = (description?: string) =>
  Type.String({ format: "date-time", ...(description === undefined ? {} : { description }) });
/** A whole number of milliseconds. */
export const ms = (description: string) => Type.Optional(Type.Integer({ minimum: 0, description }));
