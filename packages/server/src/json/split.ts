import type { JsonText } from "../domain/jobs/job.js";
import { limits } from "../limits/index.js";
import { scanJson } from "./scan.js";

/**
 * Splits a chunk's output into pieces of at most `bytesMax` bytes: strings at character boundaries, arrays between
 * elements, and anything else (or whatever still does not fit) as pieces of its JSON text, each a JSON string.
 */
export function cutOutput(output: string, bytesMax: number): string[] {
  const bytes = Buffer.from(output);
  if (bytes.length <= bytesMax) return [output];
  const bounds = { depthMax: limits.jsonDepthMax, keysMax: Number.MAX_SAFE_INTEGER, names: [], pieceBytes: bytesMax };
  const scan = scanJson(bytes, bounds);
  if (scan.ok && scan.kind === "string") return cutText(JSON.parse(output), bytesMax);
  if (scan.ok && scan.kind === "array" && scan.runs.every(({ start, end }) => end - start + 2 <= bytesMax)) {
    return scan.runs.map(({ start, end }) => `[${bytes.toString("utf8", start, end)}]`);
  }
  return cutText(output, bytesMax);
}

function cutText(text: string, bytesMax: number): string[] {
  const pieces: string[] = [];
  let from = 0;
  while (from < text.length) {
    // as an escape a character takes up to 6 bytes, but most take one
    let to = Math.min(text.length, from + bytesMax - 2);
    let piece = JSON.stringify(text.slice(from, to));
    while (Buffer.byteLength(piece) > bytesMax) {
      to = from + Math.max(1, Math.floor(((to - from) * bytesMax) / Buffer.byteLength(piece)) - 1);
      piece = JSON.stringify(text.slice(from, to));
    }
    if (to < text.length && isHighSurrogate(text.charCodeAt(to - 1)) && to - from > 1) {
      to--;
      piece = JSON.stringify(text.slice(from, to));
    }
    pieces.push(piece);
    from = to;
  }
  return pieces;
}

const isHighSurrogate = (unit: number) => unit >= 0xd800 && unit <= 0xdbff;

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
