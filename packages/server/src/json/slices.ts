import type { JsonText } from "../domain/jobs/job.js";
import { limits } from "../limits/index.js";

const bufferOf = (json: JsonText): Buffer =>
  typeof json === "string" ? Buffer.from(json) : Buffer.from(json.buffer, json.byteOffset, json.length);
const isContinued = (byte: number | undefined) => byte !== undefined && (byte & 0xc0) === 0x80;
const isHighSurrogate = (unit: number) => unit >= 0xd800 && unit <= 0xdbff;
const backslash = 0x5c;
const letterU = 0x75;

/** UTF-8 as strings of some thousand characters, so that other work gets its turn between any two. */
export function* textIn(utf8: JsonText): Generator<string> {
  const text = bufferOf(utf8);
  for (let from = 0; from < text.length; ) {
    const to = endOfSlice(text, from, text.length);
    yield text.toString("utf8", from, to);
    from = to;
  }
}

/** The same for the characters of a JSON string. */
export function* charactersIn(json: JsonText): Generator<string> {
  const text = bufferOf(json);
  const last = text.length - 1;
  let half = ""; // of a character that two escapes make
  for (let from = 1; from < last; ) {
    const to = endOfEscape(text, from, endOfSlice(text, from, last));
    const slice = half + (JSON.parse(`"${text.toString("utf8", from, to)}"`) as string);
    half = to < last && isHighSurrogate(slice.charCodeAt(slice.length - 1)) ? slice.slice(-1) : "";
    yield half === "" ? slice : slice.slice(0, -1);
    from = to;
  }
}

/** Where a slice ends: between characters. */
function endOfSlice(text: Uint8Array, from: number, last: number): number {
  let to = Math.min(from + limits.jsonPieceBytes, last);
  while (isContinued(text[to])) to--;
  return to;
}

/** The end of the escape that a position is within; the position itself if it is not within one. */
function endOfEscape(text: Uint8Array, from: number, to: number): number {
  const longest = 6;
  for (let at = to - 1; at >= from && at > to - longest; at--) {
    if (text[at] !== backslash) continue;
    let first = at;
    while (first > from && text[first - 1] === backslash) first--;
    if ((at - first) % 2 === 1) return to; // it is itself escaped
    return Math.max(to, at + (text[at + 1] === letterU ? longest : 2));
  }
  return to;
}
