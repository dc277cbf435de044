import type { JsonText } from "../domain/jobs/job.js";
import { limits } from "../limits/index.js";
import { scanJson } from "./scan.js";
import { characterBoundary, stringBoundary } from "./slices.js";

type Bytes = Uint8Array<ArrayBuffer>;

const encoder = new TextEncoder();
const [quote, bracket, closingBracket] = [0x22, 0x5b, 0x5d];

/**
 * Splits a chunk's output, as UTF-8, into pieces of at most `bytesMax` bytes: strings between characters, arrays between
 * elements, and anything else (or whatever still does not fit) as pieces of its JSON text, each a JSON string. No piece
 * shares memory with the output.
 */
export function cutOutput(output: Uint8Array, bytesMax: number): Bytes[] {
  if (output[0] === quote) return cutString(output, bytesMax);
  if (output[0] === bracket) {
    const bounds = { depthMax: limits.jsonDepthMax, keysMax: Number.MAX_SAFE_INTEGER, names: [], pieceBytes: bytesMax };
    const scan = scanJson(output, bounds);
    if (scan.ok && scan.runs.length === 0) return [encoder.encode("[]")];
    if (scan.ok && scan.runs.every(({ start, end }) => end - start + 2 <= bytesMax))
      return scan.runs.map(({ start, end }) => enclosed(bracket, output.subarray(start, end), closingBracket));
  }
  return cutText(output, bytesMax);
}

/** Keeps its text as it is, escapes included: decoding and encoding it takes many times as long as copying it. */
function cutString(output: Uint8Array, bytesMax: number): Bytes[] {
  const pieces: Bytes[] = [];
  const last = output.length - 1;
  for (let from = 1; from < last; ) {
    const to = stringBoundary(output, from, from + bytesMax - 2, last);
    pieces.push(enclosed(quote, output.subarray(from, to), quote));
    from = to;
  }
  return pieces;
}

function cutText(text: Uint8Array, bytesMax: number): Bytes[] {
  const pieces: Bytes[] = [];
  for (let from = 0; from < text.length; ) {
    // as an escape a character takes up to 6 bytes, but most take one
    let to = characterBoundary(text, from + bytesMax - 2);
    let piece = asString(text.subarray(from, to));
    while (piece.length > bytesMax) {
      const share = bytesMax / piece.length;
      to = characterBoundary(text, from + Math.floor((to - from) * share) - 1);
      piece = asString(text.subarray(from, to));
    }
    pieces.push(piece);
    from = to;
  }
  return pieces;
}

const asString = (text: Uint8Array): Bytes =>
  encoder.encode(JSON.stringify(Buffer.from(text.buffer, text.byteOffset, text.length).toString()));

function enclosed(opening: number, inner: Uint8Array, closing: number): Bytes {
  const whole = Buffer.allocUnsafeSlow(inner.length + 2); // memory of its own, which can be transferred
  whole[0] = opening;
  whole.set(inner, 1);
  whole[inner.length + 1] = closing;
  return whole;
}

/** Which of the pieces that {@link cutOutput} made from something other than an array. */
export interface Part {
  readonly isFirst: boolean;
  readonly isLast: boolean;
  readonly parts: number;
}

const partPattern = /"part":(\d+),"parts":(\d+)\}$/;

/** A piece's metrics. */
export const withParts = (metrics: string | undefined, part: number, parts: number): string =>
  `${metrics && metrics !== "{}" ? `${metrics.slice(0, -1)},` : "{"}"part":${part},"parts":${parts}}`;

/** A worker's own metrics, in a spelling that says of no chunk that it is a piece. */
export const ofNoPart = (metrics: string): string =>
  partPattern.test(metrics) ? `${metrics.slice(0, -1)} }` : metrics;

/** Undefined for a chunk that is no such piece. */
export function partOf({ output, metrics }: { output: JsonText; metrics: string | undefined }): Part | undefined {
  const [, part, parts] = partPattern.exec(metrics ?? "") ?? [];
  if (part === undefined || !startsWith(output, '"')) return undefined;
  return { isFirst: Number(part) === 0, isLast: Number(part) + 1 >= Number(parts), parts: Number(parts) };
}

/** Whether the first of such pieces may be the beginning of an object's or array's JSON. */
export const opensValue = (first: JsonText): boolean => startsWith(first, '"{') || startsWith(first, '"[');

/** Whether JSON begins with these ASCII characters. */
export const startsWith = (json: JsonText, text: string): boolean =>
  typeof json === "string" ? json.startsWith(text) : [...text].every((char, at) => json[at] === char.charCodeAt(0));
