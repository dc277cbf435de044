import { limits } from "../../../limits/index.js";
import { LargeTexts } from "./large-texts.js";

/** PostgreSQL's type numbers of the elements that we send. */
const textOid = 25;
const bigintOid = 20;
const headerBytes = 20;

/**
 * A one-dimensional array in PostgreSQL's binary format. In text format every quote of a JSON body would be escaped
 * here and unescaped there, which is most of the work for a group's bodies.
 */
function encode(
  oid: number,
  sizes: readonly (number | null)[],
  write: (into: Buffer, at: number, n: number) => void,
): Buffer {
  const bytes = sizes.reduce<number>((sum, size) => sum + 4 + (size ?? 0), headerBytes);
  const array = Buffer.allocUnsafe(bytes);
  array.writeInt32BE(1, 0); // dimensions
  array.writeInt32BE(sizes.includes(null) ? 1 : 0, 4);
  array.writeInt32BE(oid, 8);
  array.writeInt32BE(sizes.length, 12);
  array.writeInt32BE(1, 16); // the first index
  let at = headerBytes;
  sizes.forEach((size, n) => {
    array.writeInt32BE(size ?? -1, at);
    at += 4;
    if (size === null) return;
    write(array, at, n);
    at += size;
  });
  return array;
}

/**
 * A text that PostgreSQL can store: a NUL (in an id from a URL, or in a process's output) would fail the whole
 * statement.
 */
export const storable = (text: string): string => (text.includes("\0") ? text.replaceAll("\0", "\uFFFD") : text);

/** `text[]`, where nothing is NULL. Bytes are UTF-8 without NUL. */
export function texts(values: readonly (string | Uint8Array | undefined | null)[]): Buffer | LargeTexts {
  const stored = values.map((value) => (typeof value === "string" ? storable(value) : (value ?? null)));
  const sizes = stored.map((text) => (typeof text === "string" ? Buffer.byteLength(text) : (text?.length ?? null)));
  const atOnce = () =>
    encode(textOid, sizes, (into, at, n) => {
      const text = stored[n];
      if (typeof text === "string") into.write(text, at);
      else if (text) into.set(text, at);
    });
  // many small texts are one message: a group of calls is bounded anyway
  return sizes.some((size) => (size ?? 0) > limits.storedPieceBytes) ? new LargeTexts(stored, atOnce) : atOnce();
}

/** A `bigint[]` without NULLs; booleans are 0 and 1. */
export function numbers(values: readonly (number | boolean | undefined | null)[]): Buffer {
  const sizes = values.map((value) => (value === undefined || value === null ? null : 8));
  return encode(bigintOid, sizes, (into, at, n) => into.writeBigInt64BE(BigInt(Number(values[n])), at));
}
