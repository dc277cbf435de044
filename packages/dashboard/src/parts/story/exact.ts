/** A number that is written otherwise than JavaScript writes it, perhaps because it cannot hold it: it stays as it was written. */
export class Exact {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }

  /** A browser without raw JSON writes the nearest number that it holds. */
  toJSON(): unknown {
    return rawJson ? rawJson(this.text) : Number(this.text);
  }
}

const { rawJSON: rawJson } = JSON as { readonly rawJSON?: (text: string) => unknown };

/** Parses JSON with its numbers as they are written: handlers may return more digits than JavaScript can hold. */
export const readJson = (text: string): unknown => JSON.parse(text, exact);

function exact(_key: string, value: unknown, context?: { readonly source?: string }): unknown {
  const source = context?.source;
  return typeof value === "number" && source !== undefined && String(value) !== source ? new Exact(source) : value;
}
