/** Measured overhead of an object's entry in addition to its texts, in bytes. */
const entryBytes = 100;
const resourceBytes = 1_024;

const known = new WeakMap<object, number>();

/** The approximate memory of an endpoint's or template's settings, in bytes. Computed once: settings are never mutated. */
export function weightOf(settings: object): number {
  const before = known.get(settings);
  if (before !== undefined) return before;
  const weight = resourceBytes + bytesOf(settings);
  known.set(settings, weight);
  return weight;
}

function bytesOf(value: unknown): number {
  if (typeof value === "string") return value.length;
  if (typeof value !== "object" || value === null) return 0;
  let bytes = 0;
  // Object.entries would take five times as long: an environment may have 18,000 variables
  for (const name in value) bytes += entryBytes + name.length + bytesOf(value[name as keyof typeof value]);
  return bytes;
}
