/** What an object takes beside its texts, roughly, as measured: a name and its value take some 100 bytes. */
const entryBytes = 100;
const resourceBytes = 1_024;

const known = new WeakMap<object, number>();

/** About how many bytes of memory the settings of an endpoint or a template take. Settings are never changed in place. */
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
  for (const [name, each] of Object.entries(value)) bytes += entryBytes + name.length + bytesOf(each);
  return bytes;
}
