import { isUtf8 } from "node:buffer";
import { createRequire } from "node:module";
import { Worker } from "node:worker_threads";
import { type Bounds, type Scan, type Span, scanJson } from "./json-scan.js";
import { limits } from "./limits.js";

export type { Scan, Span } from "./json-scan.js";

/** A checked text: its bytes (perhaps moved) and what was found. */
export interface Checked {
  readonly bytes: Buffer;
  readonly scan: Scan;
}

const inputBounds: Bounds = { depthMax: limits.jsonDepthMax, keysMax: limits.jsonKeysMax };
const wordBounds: Bounds = { depthMax: limits.jsonDepthMax, keysMax: Number.MAX_SAFE_INTEGER };

/** Checks what a client sent. `bytes` must not be used afterwards: a large body is moved to a thread and back. */
export const checkInput = (bytes: Buffer): Promise<Checked> | Checked => check(bytes, inputBounds);
/** Checks what a worker said: a result is not refused for its number of names. */
export const checkWord = (bytes: Buffer): Promise<Checked> | Checked => check(bytes, wordBounds);

/** The same for an array of words. */
export const checkBatch = (bytes: Buffer): Promise<Checked> | Checked =>
  check(bytes, { ...wordBounds, elements: true });

/** The text of a span. */
export const textOf = (bytes: Buffer, span: Span): string => bytes.toString("utf8", span.start, span.end);

/** The member's parsed value, for small members only. */
export function memberOf(checked: Checked, name: string): unknown {
  const span = checked.scan.ok ? checked.scan.members.get(name) : undefined;
  return span && JSON.parse(textOf(checked.bytes, span));
}

function check(bytes: Buffer, bounds: Bounds): Promise<Checked> | Checked {
  if (!isUtf8(bytes)) return { bytes, scan: { ok: false, at: 0, why: "it is not UTF-8" } };
  if (bytes.length < limits.jsonThreadBytes) return { bytes, scan: scanJson(bytes, bounds) };
  return checkInThread(bytes, bounds);
}

let thread: Worker | undefined;
let lastNo = 0;
const waiting = new Map<number, (checked: Checked) => void>();

function startThread(): Worker {
  const started = new Worker(createRequire(import.meta.url).resolve("#json-thread"));
  started.unref();
  started.on("message", ({ no, bytes, scan }: { no: number; bytes: Uint8Array<ArrayBuffer>; scan: Scan }) => {
    waiting.get(no)?.({ bytes: Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength), scan });
    waiting.delete(no);
    if (waiting.size === 0) started.unref();
  });
  return started;
}

function checkInThread(bytes: Buffer, bounds: Bounds): Promise<Checked> {
  thread ??= startThread();
  const runner = thread;
  runner.ref();
  // a pooled or shared buffer cannot be moved
  const own = bytes.byteLength === bytes.buffer.byteLength ? bytes : Buffer.from(new Uint8Array(bytes).buffer);
  const no = ++lastNo;
  return new Promise((resolve) => {
    waiting.set(no, resolve);
    runner.postMessage({ no, bytes: own, bounds }, [own.buffer as ArrayBuffer]);
  });
}

/**
 * Cuts a chunk's output into pieces of at most `bytesMax`: strings at character boundaries, arrays between elements,
 * anything else (and what still does not fit) as pieces of its JSON text, each a JSON string.
 */
export function splitChunk(output: string, bytesMax: number): string[] {
  if (Buffer.byteLength(output) <= bytesMax) return [output];
  const bytes = Buffer.from(output);
  const scan = scanJson(bytes, { ...wordBounds, elements: true });
  if (scan.ok && scan.kind === "string") return cutText(JSON.parse(output), bytesMax);
  if (scan.ok && scan.kind === "array" && scan.elements.every((span) => span.end - span.start + 2 <= bytesMax)) {
    return cutArray(bytes, scan.elements, bytesMax);
  }
  return cutText(output, bytesMax);
}

function cutArray(bytes: Buffer, elements: readonly Span[], bytesMax: number): string[] {
  const pieces: string[] = [];
  let first = 0;
  let size = 2;
  elements.forEach((span, at) => {
    const added = span.end - span.start + 1;
    if (at > first && size + added > bytesMax) {
      pieces.push(
        `[${elements
          .slice(first, at)
          .map((each) => textOf(bytes, each))
          .join(",")}]`,
      );
      first = at;
      size = 2;
    }
    size += added;
  });
  pieces.push(
    `[${elements
      .slice(first)
      .map((each) => textOf(bytes, each))
      .join(",")}]`,
  );
  return pieces;
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
