import type { JsonText } from "../domain/jobs/job.js";
import { limits } from "../limits/index.js";

const bufferOf = (json: JsonText): Buffer =>
  typeof json === "string" ? Buffer.from(json) : Buffer.from(json.buffer, json.byteOffset, json.length);
const isContinued = (byte: number | undefined) => byte !== undefined && (byte & 0xc0) === 0x80;
const backslash = 0x5c;
const letterU = 0x75;
const longEscape = 6;

/** UTF-8 as strings of some thousand characters, so that other work gets its turn between any two. */
export function* textIn(utf8: JsonText): Generator<string> {
  const text = bufferOf(utf8);
  for (let from = 0; from < text.length; ) {
    const to = characterBoundary(text, from + limits.jsonPieceBytes);
    yield text.toString("utf8", from, to);
    from = to;
  }
}

/** The same for the characters of a JSON string. */
export function* charactersIn(json: JsonText): Generator<string> {
  const text = bufferOf(json);
  const last = text.length - 1;
  for (let from = 1; from < last; ) {
    const to = stringBoundary(text, from, from + limits.jsonPieceBytes, last);
    yield JSON.parse(`"${text.toString("utf8", from, to)}"`);
    from = to;
  }
}

/** The last position up to `most` that is between characters. */
export function characterBoundary(utf8: Uint8Array, most: number): number {
  let to = Math.min(most, utf8.length);
  while (isContinued(utf8[to])) to--;
  return to;
}

/** The same inside a JSON string. `from` is where its part begins, `last` where its closing quote is. */
export function stringBoundary(text: Uint8Array, from: number, most: number, last: number): number {
  if (most >= last) return last;
  const to = startOfEscape(text, from, characterBoundary(text, most));
  const before = startOfEscape(text, from, to - 1);
  return before > from && isHighSurrogate(text, before) ? before : to; // the other half of its character comes next
}

/** The start of the escape that a position is within; the position itself if it is not within one. */
function startOfEscape(text: Uint8Array, from: number, to: number): number {
  for (let at = to - 1; at >= from && at > to - longEscape; at--) {
    if (text[at] !== backslash) continue;
    let first = at;
    while (first > from && text[first - 1] === backslash) first--;
    if ((at - first) % 2 === 1) return to; // it is itself escaped
    return at + (text[at + 1] === letterU ? longEscape : 2) > to ? at : to;
  }
  return to;
}

/** Whether the escape at a position stands for the first half of a character. */
const isHighSurrogate = (text: Uint8Array, at: number): boolean =>
  text[at] === backslash && /^\\u[dD][89abAB]/.test(String.fromCharCode(...text.subarray(at, at + 4)));
