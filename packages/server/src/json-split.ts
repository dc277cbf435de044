import { scanJson } from "./json-scan.js";
import { limits } from "./limits.js";

/**
 * Cuts a chunk's output into pieces of at most `bytesMax`: strings at character boundaries, arrays between elements,
 * anything else (and what still does not fit) as pieces of its JSON text, each a JSON string.
 */
export function cutOutput(output: string, bytesMax: number): string[] {
  const bytes = Buffer.from(output);
  if (bytes.length <= bytesMax) return [output];
  const bounds = { depthMax: limits.jsonDepthMax, keysMax: Number.MAX_SAFE_INTEGER, pieceBytes: bytesMax };
  const scan = scanJson(bytes, bounds);
  if (scan.ok && scan.kind === "string") return cutText(JSON.parse(output), bytesMax);
  if (scan.ok && scan.kind === "array" && scan.runs) {
    return scan.runs.map(({ start, end }) => `[${bytes.toString("utf8", start, end)}]`);
  }
  return cutText(output, bytesMax);
}

function cutText(text: string, bytesMax: number): string[] {
  const pieces: string[] = [];
  let from = 0;
  while (from < text.length) {
    // a character becomes at most 6 bytes as an escape; most become one
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
