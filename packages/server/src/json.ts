import { isUtf8 } from "node:buffer";
import { createRequire } from "node:module";
import { Worker } from "node:worker_threads";
import { type Bounds, type Scan, type Span, scanJson } from "./json-scan.js";
import { cutOutput } from "./json-split.js";
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
  check(bytes, { ...wordBounds, elementsMax: limits.doneBatchMax });

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
/** What the thread has done: a check, or a cut. */
interface Done {
  readonly bytes: Buffer;
  readonly scan?: Scan;
  readonly pieces?: string[];
}
const waiting = new Map<number, (done: Done) => void>();

function startThread(): Worker {
  const started = new Worker(createRequire(import.meta.url).resolve("#json-thread"));
  started.unref();
  started.on(
    "message",
    ({ no, bytes, ...done }: { no: number; bytes: Uint8Array<ArrayBuffer> } & Omit<Done, "bytes">) => {
      waiting.get(no)?.({ ...done, bytes: Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength) });
      waiting.delete(no);
      if (waiting.size === 0) started.unref();
    },
  );
  return started;
}

/** Gives the thread something to do: `bytes` are moved to it. */
function inThread(bytes: Buffer, task: { bounds: Bounds } | { pieceBytes: number }): Promise<Done> {
  thread ??= startThread();
  const runner = thread;
  runner.ref();
  // a pooled or shared buffer cannot be moved
  const own = bytes.byteLength === bytes.buffer.byteLength ? bytes : Buffer.from(new Uint8Array(bytes).buffer);
  const no = ++lastNo;
  return new Promise((resolve) => {
    waiting.set(no, resolve);
    runner.postMessage({ no, bytes: own, ...task }, [own.buffer as ArrayBuffer]);
  });
}

async function checkInThread(bytes: Buffer, bounds: Bounds): Promise<Checked> {
  const { bytes: back, scan } = await inThread(bytes, { bounds });
  return { bytes: back, scan: scan as Scan };
}

/** Cuts a chunk's output into pieces of at most `bytesMax`, large ones off this thread. */
export async function splitChunk(output: string, bytesMax: number): Promise<string[]> {
  if (output.length < limits.jsonThreadBytes) return cutOutput(output, bytesMax);
  const { pieces } = await inThread(Buffer.from(output), { pieceBytes: bytesMax });
  return pieces as string[];
}
