import { invalid } from "../errors.js";

/** A schema of the REST API, as far as ranges are concerned: a field that may be null is a union. */
interface Schema {
  readonly type?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly anyOf?: readonly Schema[];
}

/** Holds numbers to the ranges that the same fields have over REST. */
export function checkRanges(fields: Readonly<Record<string, unknown>>, { properties }: { properties: object }): void {
  for (const [name, value] of Object.entries(fields)) {
    const schema = (properties as Record<string, Schema>)[name];
    const range = schema?.anyOf?.find(({ type }) => type === "integer") ?? schema;
    if (typeof value !== "number" || range?.minimum === undefined || range.maximum === undefined) continue;
    if (value < range.minimum || value > range.maximum)
      throw invalid(`'${name}' must be from ${range.minimum} to ${range.maximum}.`);
  }
}
