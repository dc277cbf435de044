import type { Worker } from "node:worker_threads";
import type { JsonText } from "../domain/jobs/job.js";
import { limits } from "../limits/index.js";
import { turns } from "../turns.js";
import { type Checker, checkerOf, checkers } from "./checker.js";
import { type Bounds, type Scan, type Span, scanJson } from "./scan.js";
import { digestOf, scanUtf8 } from "./utf8.js";

export { Joined } from "./joined.js";
export type { Scan, Span } from "./scan.js";
export { charactersIn, textIn } from "./slices.js";
export { ofNoPart, opensValue, type Part, partOf, startsWith, withParts } from "./split.js";

/** A checked text: its bytes, which may have been moved, and the findings. */
export interface Checked {
  readonly bytes: Buffer;
  readonly scan: Scan;
}

/** A JSON value in pieces. */
export type Pieced = readonly JsonText[];

const lane = ["json"] as const;

/** A text that was sent to us: in one piece, or being moved to the thread that checks it. */
export type ReceivedText = Buffer | ArrivingText;

const inputBounds: Bounds = {
  depthMax: limits.jsonDepthMax,
  keysMax: limits.jsonKeysMax,
  names: ["input", "webhook", "policy", "s3Config"],
  othersMax: limits.ignoredNamesMax,
};
const openAiBounds: Bounds = { depthMax: limits.jsonDepthMax, keysMax: limits.jsonKeysMax, names: ["stream"] };
const wordBounds: Bounds = {
  depthMax: limits.jsonDepthMax,
  keysMax: Number.MAX_SAFE_INTEGER,
  names: ["id", "status", "output", "error", "metrics", "stopPod"],
};

/** Checks a client's text. `sent` must not be used afterwards: a large body is transferred to a thread and back. */
export const checkInput = (sent: ReceivedText): Promise<Checked> | Checked => check(sent, inputBounds);
export const checkOpenAi = (sent: ReceivedText): Promise<Checked> | Checked => check(sent, openAiBounds);
/** Checks a worker's text. A result is not refused for its number of names. */
export const checkWord = (sent: ReceivedText): Promise<Checked> | Checked => check(sent, wordBounds);

/** The same, with a digest of the text. */
export const checkDigested = async (sent: ReceivedText): Promise<Checked & { readonly digest: string }> =>
  (await check(sent, wordBounds, true)) as Checked & { readonly digest: string };

/** The same for a part of a text that stays in place: a large one is copied, in turns with other work. */
export const checkPart = async (part: Buffer): Promise<Checked> =>
  check(part.length < limits.jsonThreadBytes ? part : await copyOf(part), wordBounds);

/** The same for an array of results. */
export const checkBatch = (bytes: Buffer): Promise<Checked> | Checked =>
  check(bytes, { ...wordBounds, elementsMax: limits.doneBatchMax });

const arrayBounds: Bounds = { ...wordBounds, names: [] };

/**
 * The elements of a JSON array; undefined if the text is no array. Each is made only when it is asked for, and even the
 * positions of elements are found a piece of the array at a time, because there may be millions.
 */
export async function elementsOf(array: JsonText): Promise<Iterable<JsonText> | undefined> {
  const { bytes, scan } = await check(await copyOf(array), { ...arrayBounds, pieceBytes: limits.jsonPieceBytes });
  return scan.ok && scan.kind === "array" ? elementsIn(bytes, scan.runs) : undefined;
}

/** A copy that may be moved to a thread: others may be reading the original. */
async function copyOf(json: JsonText): Promise<ReceivedText> {
  if (typeof json === "string") return Buffer.from(json);
  if (json.length < limits.jsonThreadBytes) return Buffer.from(new Uint8Array(json).buffer);
  const copy = new ArrivingText(json.length);
  for (let at = 0; at < json.length; at += limits.jsonTransferBytes) {
    if (turns.isOver) await turns.take(lane);
    copy.add(Buffer.from(json.buffer, json.byteOffset + at, Math.min(limits.jsonTransferBytes, json.length - at)));
  }
  return copy;
}

function* elementsIn(bytes: Buffer, runs: readonly Span[]): Generator<JsonText> {
  for (const run of runs) {
    const isOneElement = run.end - run.start + 2 > limits.jsonPieceBytes;
    if (isOneElement) yield jsonOf(bytes, run);
    else yield* elementsAtOnce(Buffer.from(`[${textOf(bytes, run)}]`));
  }
}

function* elementsAtOnce(bytes: Buffer): Generator<string> {
  const scan = scanJson(bytes, { ...arrayBounds, elementsMax: Number.MAX_SAFE_INTEGER });
  if (scan.ok) for (const span of scan.elements) yield textOf(bytes, span);
}

/** Whether joined pieces are JSON. Pieces of a string hardly ever are. */
export const isJson = async (text: JsonText): Promise<boolean> =>
  (await check(await copyOf(text), arrayBounds)).scan.ok;

/** The text of a span. */
export const textOf = (bytes: Buffer, span: Span): string => bytes.toString("utf8", span.start, span.end);

/**
 * The first characters of a string, or of the JSON of any other value. However long the value, only as many bytes as
 * needed are decoded.
 */
export function beginningOf(bytes: Buffer, { start, end }: Span, charsMax: number): string {
  const isString = bytes[start] === 0x22;
  const [from, to] = isString ? [start + 1, end - 1] : [start, end];
  const text = textOf(bytes, { start: from, end: endOfCharacters(bytes, from, to, charsMax) });
  return (isString ? (JSON.parse(`"${text}"`) as string) : text).slice(0, charsMax);
}

/** Where that many characters end, counting an escape as one; never inside a character or an escape. */
function endOfCharacters(bytes: Buffer, start: number, end: number, charsMax: number): number {
  let at = start;
  for (let chars = 0; chars < charsMax && at < end; chars++) {
    const c = bytes[at] as number;
    if (c === 0x5c) at += bytes[at + 1] === 0x75 ? 6 : 2;
    else at += c < 0x80 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
  }
  return at;
}

/** The JSON of a span, for passing on. A large one stays bytes: as a string it would be copied at every step. */
export const jsonOf = (bytes: Buffer, span: Span): JsonText =>
  span.end - span.start < limits.jsonThreadBytes ? textOf(bytes, span) : bytes.subarray(span.start, span.end);

/** A JSON value in one piece. Its pieces may be many megabytes, whose copying takes turns with other work. */
export async function wholeOf(pieces: Pieced): Promise<JsonText> {
  const [first] = pieces;
  if (pieces.length === 1 && first !== undefined) return first;
  const bytes = pieces.map((piece) => (typeof piece === "string" ? Buffer.from(piece) : piece));
  const whole = Buffer.allocUnsafeSlow(bytes.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const piece of bytes) {
    if (turns.isOver) await turns.take(lane);
    whole.set(piece, at);
    at += piece.length;
  }
  return whole;
}

/** JSON as a string, for callers that must look into it. */
export const stringOf = (json: JsonText): string =>
  typeof json === "string" ? json : Buffer.from(json.buffer, json.byteOffset, json.length).toString();

/** The parsed value of a small member; undefined for a long one, because parsing it could block the event loop. */
export function memberOf(checked: Checked, name: string): unknown {
  const span = checked.scan.ok ? checked.scan.members.get(name) : undefined;
  if (!span || span.end - span.start > limits.memberBytesMax) return undefined;
  return JSON.parse(textOf(checked.bytes, span));
}

function check(sent: ReceivedText, bounds: Bounds, isDigested = false): Promise<Checked> | Checked {
  if (sent instanceof ArrivingText) return sent.check(bounds, isDigested);
  // many bodies may be complete in the same turn of the event loop
  if (sent.length <= limits.jsonBytesFree || (sent.length < limits.jsonThreadBytes && !turns.isOver))
    return { bytes: sent, scan: scanUtf8(sent, bounds), ...(isDigested ? { digest: digestOf(sent) } : {}) };
  const no = ++lastNo;
  const bytes = movable(sent);
  return checkerOf(bytes.length).do({ no, bytes, bounds, isDigested }, [bytes.buffer]) as Promise<Checked>;
}

let lastNo = 0;

type Bytes = Uint8Array<ArrayBuffer>;

/** The same bytes in memory of their own, because pooled or shared memory cannot be transferred. */
const movable = (bytes: Buffer): Bytes =>
  (bytes.byteLength === bytes.buffer.byteLength ? bytes : new Uint8Array(bytes)) as Bytes;

/**
 * A large text that arrives in pieces. They are transferred to the thread, which joins and checks them: kept on the main
 * thread until the end, they would count towards its garbage collector, which would run constantly.
 */
export class ArrivingText {
  readonly #no = ++lastNo;
  readonly #announced: number;
  readonly #checker: Checker;
  /** Pieces that are not transferred yet, copied together: transferring one byte takes as long as 64 KiB. */
  #memory: Bytes | undefined;
  #memoryBytes = 0;
  #length = 0;
  #isOver = false;
  /** The thread that holds the text's beginning. */
  #holder: Worker | undefined;

  /** `announced`: the announced length, which is never exceeded. */
  constructor(announced: number) {
    this.#announced = announced;
    this.#checker = checkerOf(announced);
  }

  get length(): number {
    return this.#length;
  }

  add(piece: Buffer): void {
    if (this.#isOver) return; // the thread has dropped the text, and would keep this piece for ever
    for (let at = 0; at < piece.length; ) {
      const left = Math.max(this.#announced - this.#length, piece.length);
      this.#memory ??= Buffer.allocUnsafeSlow(Math.min(limits.jsonTransferBytes, left));
      const some = piece.subarray(at, at + this.#memory.length - this.#memoryBytes);
      this.#memory.set(some, this.#memoryBytes);
      this.#memoryBytes += some.length;
      this.#length += some.length;
      at += some.length;
      if (this.#memoryBytes === this.#memory.length) this.#send();
    }
  }

  check(bounds: Bounds, isDigested = false): Promise<Checked> {
    // the remaining pieces would be judged as if they were the whole text
    if (this.#isOver) return Promise.reject(new Error("The text was given up before it was checked"));
    this.#send();
    this.#isOver = true;
    if (this.#isLost) return Promise.reject(new Error("The thread that held the text's beginning has ended"));
    return this.#checker.do({ no: this.#no, bounds, isDigested }) as Promise<Checked>;
  }

  /** Drops the text, which will not be checked. */
  drop(): void {
    if (!this.#isOver) this.#checker.tell({ no: this.#no, dropped: true });
    this.#isOver = true;
  }

  /** Whether the thread with the beginning has ended. The rest must not be judged as a text. */
  get #isLost(): boolean {
    return this.#holder !== undefined && !this.#checker.isRunBy(this.#holder);
  }

  #send(): void {
    if (!this.#memory || this.#isLost) return;
    const piece = this.#memory.subarray(0, this.#memoryBytes);
    this.#memory = undefined;
    this.#memoryBytes = 0;
    this.#holder = this.#checker.tell({ no: this.#no, piece, announced: this.#announced }, [piece.buffer]);
  }
}

/**
 * Splits a chunk's output into pieces of at most `bytesMax` bytes, off this thread. `bytes` must not be used
 * afterwards: if a split is needed, they are transferred.
 */
export async function splitChunk(bytes: Buffer, span: Span, bytesMax: number): Promise<readonly JsonText[]> {
  if (span.end - span.start <= bytesMax) return [jsonOf(bytes, span)];
  const moved = movable(bytes);
  const { pieces } = await checkers.large.do({ no: ++lastNo, bytes: moved, span, pieceBytes: bytesMax }, [
    moved.buffer,
  ]);
  return pieces as readonly Uint8Array[];
}
