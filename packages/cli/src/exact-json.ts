/** JSON's numbers as they were written, which `JSON.stringify` writes again as they stand. */
const { rawJSON } = JSON as typeof JSON & { rawJSON(text: string): object };

type Reviver = (key: string, value: unknown, context: { readonly source?: string }) => unknown;

/**
 * Parses JSON in which a number may be longer than JavaScript's are, or tell a float by its point: 12345678901234567890
 * and 1.0 stay what they are when they are written again. Throws a SyntaxError.
 */
export function parseExactly(text: string): unknown {
  const exactly: Reviver = (_, value, { source }) =>
    typeof value === "number" && source !== undefined && String(value) !== source ? rawJSON(source) : value;
  return JSON.parse(text, exactly as Parameters<typeof JSON.parse>[1]);
}
