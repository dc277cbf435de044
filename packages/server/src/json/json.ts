import { createRequire } from "node:module";
import { Worker } from "node:worker_threads";
import type { JsonText } from "../domain/jobs/job.js";
import { limits } from "../limits/index.js";
import { type Bounds, type Scan, type Span, scanJson } from "./scan.js";
import type { Task } from "./thread.js";
import { scanUtf8 } from "./utf8.js";

export { Joined } from "./parts.js";
export type { Scan, Span } from "./scan.js";
export { isJsonText, pieceOf } from "./split.js";

/** A checked text: its bytes (perhaps moved) and what was found. */
export interface Checked {
  readonly bytes: Buffer;
  readonly scan: Scan;
}

/** A text that was sent to us: in one piece, or on its way to be checked. */
export type Sent = Buffer | PartedText;

const inputBounds: Bounds = {
  depthMax: limits.jsonDepthMax,
  keysMax: limits.jsonKeysMax,
  names: ["input", "webhook", "policy", "s3Config", "stream"],
};
const wordBounds: Bounds = {
  depthMax: limits.jsonDepthMax,
  keysMax: Number.MAX_SAFE_INTEGER,
  names: ["id", "status", "output", "error", "metrics", "stopPod"],
};

/** Checks what a client sent. It must not be used afterwards: a large body is moved to a thread and back. */
export const checkInput = (sent: Sent): Promise<Checked> | Checked => check(sent, inputBounds);
/** Checks what a worker said: a result is not refused for its number of names. */
export const checkWord = (sent: Sent): Promise<Checked> | Checked => check(sent, wordBounds);

/** The same for an array of words. */
export const checkBatch = (bytes: Buffer): Promise<Checked> | Checked =>
  check(bytes, { ...wordBounds, elementsMax: limits.doneBatchMax });

const arrayBounds: Bounds = { ...wordBounds, names: [] };

/**
 * The elements of a JSON text that is an array, as they stand in it; undefined where it is none. Each is made when it is
 * asked for: there may be millions, so even where they stand is found for a piece of the array at a time.
 */
export async function elementsOf(text: string): Promise<Iterable<string> | undefined> {
  const { bytes, scan } = await check(Buffer.from(text), { ...arrayBounds, pieceBytes: limits.jsonPieceBytes });
  return scan.ok && scan.kind === "array" ? elementsIn(bytes, scan.runs) : undefined;
}

function* elementsIn(bytes: Buffer, runs: readonly Span[]): Generator<string> {
  for (const run of runs) {
    const isOneElement = run.end - run.start + 2 > limits.jsonPieceBytes;
    if (isOneElement) yield textOf(bytes, run);
    else yield* elementsAtOnce(Buffer.from(`[${textOf(bytes, run)}]`));
  }
}

function* elementsAtOnce(bytes: Buffer): Generator<string> {
  const scan = scanJson(bytes, { ...arrayBounds, elementsMax: Number.MAX_SAFE_INTEGER });
  if (scan.ok) for (const span of scan.elements) yield textOf(bytes, span);
}

/** The text of a span. */
export const textOf = (bytes: Buffer, span: Span): string => bytes.toString("utf8", span.start, span.end);

/**
 * The first characters of a value: of a string its own, of anything else those of its JSON. No more bytes become a text than
 * these take, however long the value is.
 */
export function beginningOf(bytes: Buffer, { start, end }: Span, charsMax: number): string {
  const isString = bytes[start] === 0x22;
  const [from, to] = isString ? [start + 1, end - 1] : [start, end];
  const text = textOf(bytes, { start: from, end: endOfCharacters(bytes, from, to, charsMax) });
  return (isString ? (JSON.parse(`"${text}"`) as string) : text).slice(0, charsMax);
}

/** Where so many characters end, an escape being one: never within either. */
function endOfCharacters(bytes: Buffer, start: number, end: number, charsMax: number): number {
  let at = start;
  for (let chars = 0; chars < charsMax && at < end; chars++) {
    const c = bytes[at] as number;
    if (c === 0x5c) at += bytes[at + 1] === 0x75 ? 6 : 2;
    else at += c < 0x80 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
  }
  return at;
}

/** The JSON of a span, to be handed on: a large one is never made a text, which would be another copy of it at every step. */
export const jsonOf = (bytes: Buffer, span: Span): JsonText =>
  span.end - span.start < limits.jsonThreadBytes ? textOf(bytes, span) : bytes.subarray(span.start, span.end);

/** JSON as a text, for those who must look into it. */
export const stringOf = (json: JsonText): string =>
  typeof json === "string" ? json : Buffer.from(json.buffer, json.byteOffset, json.length).toString();

/** The parsed value of a small member; undefined also where it is long, since parsing it would hold up the event loop. */
export function memberOf(checked: Checked, name: string): unknown {
  const span = checked.scan.ok ? checked.scan.members.get(name) : undefined;
  if (!span || span.end - span.start > limits.memberBytesMax) return undefined;
  return JSON.parse(textOf(checked.bytes, span));
}

function check(sent: Sent, bounds: Bounds): Promise<Checked> | Checked {
  if (sent instanceof PartedText) return sent.check(bounds);
  if (sent.length < limits.jsonThreadBytes && hasTurn(sent.length))
    return { bytes: sent, scan: scanUtf8(sent, bounds) };
  const no = ++lastNo;
  const bytes = movable(sent);
  return inThread({ no, bytes, bounds }, [bytes.buffer]) as Promise<Checked>;
}

let bytesLeft: number = limits.jsonBytesPerTurn;
let isTurnSet = false;

/** Whether this thread may check so many bytes now. Many bodies can be complete in the same turn of the event loop. */
function hasTurn(bytes: number): boolean {
  if (bytes <= limits.jsonBytesFree) return true;
  if (!isTurnSet) setImmediate(nextTurn);
  isTurnSet = true;
  bytesLeft -= bytes;
  return bytesLeft >= 0;
}

function nextTurn(): void {
  bytesLeft = limits.jsonBytesPerTurn;
  isTurnSet = false;
}

let thread: Worker | undefined;
let lastNo = 0;
/** What the thread has done: a check, or a cut. */
interface Done {
  readonly bytes: Buffer;
  readonly scan?: Scan;
  readonly pieces?: readonly Uint8Array[];
}
const waiting = new Map<number, { resolve: (done: Done) => void; reject: (error: Error) => void }>();

function startThread(): Worker {
  const started = new Worker(createRequire(import.meta.url).resolve("#json-thread"));
  started.unref();
  started.on("message", ({ no, bytes, ...done }: Omit<Done, "bytes"> & { no: number; bytes: Bytes }) => {
    waiting.get(no)?.resolve({ ...done, bytes: Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength) });
    waiting.delete(no);
    if (waiting.size === 0) started.unref();
  });
  // it ran out of memory: what it had is refused for now, and the next text begins another
  started.on("error", (error) => {
    if (thread === started) thread = undefined;
    for (const { reject } of waiting.values()) reject(error);
    waiting.clear();
  });
  return started;
}

function tell(task: Task, moved: ArrayBuffer[] = []): Worker {
  thread ??= startThread();
  thread.postMessage(task, moved);
  return thread;
}

/** Gives the thread something to do, and waits for it. */
function inThread(task: Task, moved: ArrayBuffer[] = []): Promise<Done> {
  return new Promise((resolve, reject) => {
    waiting.set(task.no, { resolve, reject });
    tell(task, moved).ref();
  });
}

type Bytes = Uint8Array<ArrayBuffer>;

/** The same bytes in memory of their own: what is pooled or shared cannot be moved. */
const movable = (bytes: Buffer): Bytes =>
  (bytes.byteLength === bytes.buffer.byteLength ? bytes : new Uint8Array(bytes)) as Bytes;

/**
 * A large text that comes in parts. They are moved to the thread, which joins and checks them: what the main thread held of
 * it until its end would be counted by its garbage collector, which would run all the time.
 */
export class PartedText {
  readonly #no = ++lastNo;
  readonly #announced: number;
  /** What has come since parts were last moved. Copied together: to move memory takes as long for a byte as for 64 KiB. */
  #memory: Bytes | undefined;
  #memoryBytes = 0;
  #length = 0;
  #isOver = false;
  /** The thread that holds its beginning. */
  #holder: Worker | undefined;

  /** `announced`: how long the whole says it is; it is never longer. */
  constructor(announced: number) {
    this.#announced = announced;
  }

  get length(): number {
    return this.#length;
  }

  add(part: Buffer): void {
    if (this.#isOver) return; // the thread has let it go, and would keep what comes now for ever
    for (let at = 0; at < part.length; ) {
      const left = Math.max(this.#announced - this.#length, part.length);
      this.#memory ??= Buffer.allocUnsafeSlow(Math.min(limits.jsonPartsBytes, left));
      const some = part.subarray(at, at + this.#memory.length - this.#memoryBytes);
      this.#memory.set(some, this.#memoryBytes);
      this.#memoryBytes += some.length;
      this.#length += some.length;
      at += some.length;
      if (this.#memoryBytes === this.#memory.length) this.#send();
    }
  }

  check(bounds: Bounds): Promise<Checked> {
    // what is left of it would be taken for a text that is not JSON
    if (this.#isOver) return Promise.reject(new Error("The text was given up before it was checked"));
    this.#send();
    this.#isOver = true;
    if (this.#isLost) return Promise.reject(new Error("The thread that held the text's beginning has ended"));
    return inThread({ no: this.#no, bounds }) as Promise<Checked>;
  }

  /** Nobody will have it checked. */
  drop(): void {
    if (!this.#isOver) tell({ no: this.#no, dropped: true });
    this.#isOver = true;
  }

  /** What is left of it is no text: it must not be judged as one. */
  get #isLost(): boolean {
    return this.#holder !== undefined && this.#holder !== thread;
  }

  #send(): void {
    if (!this.#memory || this.#isLost) return;
    const part = this.#memory.subarray(0, this.#memoryBytes);
    this.#memory = undefined;
    this.#memoryBytes = 0;
    this.#holder = tell({ no: this.#no, part, announced: this.#announced }, [part.buffer]);
  }
}

/**
 * Cuts a chunk's output into pieces of at most `bytesMax`, off this thread. The bytes must not be used afterwards: they are
 * moved where the output has to be cut.
 */
export async function splitChunk(bytes: Buffer, span: Span, bytesMax: number): Promise<readonly JsonText[]> {
  if (span.end - span.start <= bytesMax) return [jsonOf(bytes, span)];
  const moved = movable(bytes);
  const { pieces } = await inThread({ no: ++lastNo, bytes: moved, span, pieceBytes: bytesMax }, [moved.buffer]);
  return pieces as readonly Uint8Array[];
}
