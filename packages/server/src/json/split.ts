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

/**
 * The text of a piece that {@link cutOutput} made from something other than an array; undefined if it is not such a
 * piece.
 */
export function pieceOf(output: string, metrics: string | undefined): { text: string; isLast: boolean } | undefined {
  if (!output.startsWith('"') || !metrics?.includes('"parts"')) return undefined;
  const { part, parts } = JSON.parse(metrics) as { part?: unknown; parts?: unknown };
  if (typeof part !== "number" || typeof parts !== "number") return undefined;
  return { text: JSON.parse(output), isLast: part + 1 >= parts };
}
