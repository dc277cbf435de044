import { rmSync } from "node:fs";
import type { Readable } from "node:stream";
import type Docker from "dockerode";
import { realTime } from "../../clock.js";
import { hiddenTexts } from "../../domain/access/secret.js";
import type { HiddenTexts, LogLine, LogStream } from "../../domain/workers/log-line.js";
import { limits } from "../../limits/index.js";
import type { LogQuery } from "../../provider.js";
import { turns } from "../../turns.js";
import { LogFile, logPath } from "../log-files/log-file.js";
import { wantedBy } from "../log-files/reading.js";
import { LineTimes, storedLine } from "../log-files/stored-line.js";
import { hiddenOf } from "./ends.js";
import { answered, statusOf } from "./failures.js";

/** A worker's container, and the secrets to mask in its log. */
export interface Contained {
  readonly workerId: string;
  readonly container: Docker.Container;
  readonly secrets: HiddenTexts;
}

/** The worker's own secret and its owner's, from the container's environment. */
export function secretsIn({ Config }: Docker.ContainerInspectInfo): string[] {
  const env = Object.fromEntries((Config.Env ?? []).map((each) => [before(each), each.slice(before(each).length + 1)]));
  return [env.RUNPOD_AI_API_KEY ?? "", ...hiddenTexts(env, hiddenOf(Config.Labels))];
}

const before = (entry: string) => entry.split("=", 1)[0] as string;

/**
 * The lines of an existing container: first the lines that its engine keeps, then new lines until it ends. If none of
 * the kept lines are wanted, starts at `askedAt`, in ms of the engine's clock.
 */
export async function* containerLogs(
  contained: Contained,
  host: string,
  query: LogQuery,
  askedAt: number,
): AsyncGenerator<readonly LogLine[]> {
  const isWanted = wantedBy(query);
  const lines = new EngineLines(contained);
  // the last lines are not always the last that are wanted: if some are left out, all are read
  const isWhole = query.jobId === undefined && query.untilUs === undefined;
  const tail = isWhole ? query.tail && query.tail + limits.logBurstLines : undefined;
  const since = lines.sinceOf(query.sinceUs);
  const there = tail === 0 ? Buffer.alloc(0) : await stored(contained, host, { since, tail, signal: query.signal });
  if (tail === 0) lines.beginAt(askedAt);
  if (query.search) query.search.bytesLeft -= there.length;
  yield* lastOf(wanted(lines.push(there, { isLast: !query.follow }), isWanted), query.tail);
  while (query.follow && !query.signal.aborted) {
    yield* wanted(come(contained.container, lines, query.signal), isWanted);
    // a restarting engine hangs up, but its containers may live on
    if (query.signal.aborted || (await hasEnded(contained, host, query.signal))) break;
  }
  if (!query.follow || query.signal.aborted) return;
  // the engine may hang up before it has sent the last lines
  lines.dropFrame();
  const left = await stored(contained, host, { since: lines.since, signal: query.signal }).catch(nothing);
  yield* wanted(lines.push(left, { isLast: true }), isWanted);
}

type Batches = AsyncIterable<readonly LogLine[]>;

async function* wanted(batches: Batches, isWanted: (line: LogLine) => boolean): AsyncGenerator<readonly LogLine[]> {
  for await (const batch of batches) {
    const found = batch.filter(isWanted);
    if (found.length > 0) yield found;
  }
}

/** The last lines; all if `count` is undefined. */
async function* lastOf(batches: Batches, count: number | undefined): AsyncGenerator<readonly LogLine[]> {
  if (count === undefined) return yield* batches;
  const last: (readonly LogLine[])[] = [];
  let held = 0;
  for await (const batch of batches) {
    last.push(batch);
    held += batch.length;
    while (held - (last[0]?.length ?? 0) >= count) held -= last.shift()?.length ?? 0;
  }
  const found = last.flat();
  if (held > 0 && count > 0) yield found.slice(-count);
}

/** The log of a container that was removed meanwhile. */
const nothing = () => Buffer.alloc(0);

/** Saves a container's log to its worker's files, before the container is removed. */
export async function keepContainerLog(contained: Contained, host: string, logsDir: string): Promise<void> {
  const lines = new EngineLines(contained);
  const there = await stored(contained, host, {});
  const path = logPath(logsDir, contained.workerId);
  for (const each of [path, `${path}.1`]) rmSync(each, { force: true }); // start over if a crash left part of it
  const file = new LogFile(path);
  for await (const some of lines.push(there, { isLast: true }))
    file.append(some.map(({ atUs, stream, text }) => `${storedLine(atUs, stream, text)}\n`).join(""));
  file.close();
}

/** The output that the engine keeps of a container, in frames. Its size is bounded by the container's log options. */
async function stored(
  { container }: Contained,
  host: string,
  { since, tail, signal }: { since?: string | undefined; tail?: number | undefined; signal?: AbortSignal },
): Promise<Buffer> {
  const asked = { ...sinceOption(since), ...(tail === undefined ? {} : { tail }) };
  const options = { ...pipes, follow: false as const, ...asked };
  const ask = (late: AbortSignal) =>
    container.logs({ ...options, abortSignal: signal === undefined ? late : AbortSignal.any([late, signal]) });
  return (await answered(ask, host)) as unknown as Buffer;
}

const pipes = { stdout: true, stderr: true, timestamps: true } as const;
// the engine takes nanoseconds as a decimal fraction, which a number would round
const sinceOption = (since: string | undefined) => (since === undefined ? {} : { since: since as unknown as number });

/** New lines after the last one, until the engine hangs up. */
async function* come(
  container: Docker.Container,
  lines: EngineLines,
  signal: AbortSignal,
): AsyncGenerator<readonly LogLine[]> {
  let frames: Readable | undefined;
  const leave = () => frames?.destroy();
  try {
    const options = { ...pipes, follow: true as const, ...sinceOption(lines.since), abortSignal: signal };
    lines.dropFrame();
    frames = (await container.logs(options)) as unknown as Readable;
    signal.addEventListener("abort", leave);
    for await (const chunk of frames) {
      yield* lines.push(chunk as Buffer);
    }
  } catch {
    // the engine or the reader is gone; the caller decides whether to try again
  } finally {
    signal.removeEventListener("abort", leave);
    leave();
  }
}

/** Whether a container has ended or is gone; retries while the engine is away. */
async function hasEnded({ container }: Contained, host: string, signal: AbortSignal): Promise<boolean> {
  while (!signal.aborted) {
    try {
      const isRunning = (await answered(container.inspect(), host)).State.Running;
      if (isRunning) await realTime.sleep(limits.logPassMs, signal);
      return !isRunning;
    } catch (error) {
      if (statusOf(error) === 404) return true;
      await realTime.sleep(limits.engineRetryMs, signal);
    }
  }
  return true;
}

const headerBytes = 8;
const nanosPerSecond = 1_000_000_000n;
const repeatsWithinNs = BigInt(limits.logRepeatsWithinMs) * 1_000_000n;

/**
 * Parses lines from the engine's frames. Each frame has a header with its pipe and length, and holds a time and a line,
 * or a piece of a long line.
 */
class EngineLines {
  readonly #contained: Contained;
  readonly #times = new LineTimes();
  readonly #pieces = new Map<LogStream, { atUs: number; text: string }>();
  #rest: Buffer = Buffer.alloc(0);
  /** The time of each pipe's last line, in the order in which the engine sends them. */
  readonly #heardNs = new Map<LogStream, bigint>();
  readonly #repeated = new Set<LogStream>();
  #lastNs: bigint | undefined;
  #sinceNs: bigint | undefined;

  constructor(contained: Contained) {
    this.#contained = contained;
  }

  /** Where the engine should resume: after the last line, or where reading was to begin. */
  get since(): string | undefined {
    const from = this.#lastNs === undefined ? this.#sinceNs : this.#lastNs + 1n;
    return from === undefined ? undefined : secondsOf(from);
  }

  /** Begins at this microsecond, or a little earlier: lines of a burst are shown later than the engine's times. */
  sinceOf(us: number | undefined): string | undefined {
    if (us !== undefined) this.#sinceNs = BigInt(Math.max(0, Math.floor(us) - limits.logBurstUs)) * 1_000n;
    return this.since;
  }

  /** Begins with lines from this millisecond on. */
  beginAt(ms: number): void {
    this.#sinceNs = BigInt(ms) * 1_000_000n;
  }

  /** Drops an incomplete frame: the next connection does not continue it. */
  dropFrame(): void {
    this.#rest = Buffer.alloc(0);
  }

  /** The lines of these frames, in batches that each take a turn. `isLast`: no more frames will come. */
  async *push(chunk: Buffer, { isLast = false } = {}): AsyncGenerator<LogLine[]> {
    this.#rest = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    for (let hasMore = true; hasMore; ) {
      if (turns.isOver) await turns.take(["logs"]);
      const lines: LogLine[] = [];
      hasMore = this.#parse(lines);
      if (isLast && !hasMore) lines.push(...this.#end());
      yield lines;
    }
  }

  /** Parses frames until there are no more, which returns false, or a turn's worth of work is done. */
  #parse(lines: LogLine[]): boolean {
    let unitsLeft: number = limits.logMaskUnitsMax;
    for (let frames = 0; this.#rest.length >= headerBytes; frames++) {
      const end = headerBytes + this.#rest.readUInt32BE(4);
      if (this.#rest.length < end) return false;
      if (frames === limits.logFramesPerTurn || unitsLeft <= 0) return true;
      const line = this.#message(
        this.#rest[0] === 2 ? "stderr" : "stdout",
        this.#rest.toString("utf8", headerBytes, end),
      );
      if (line) lines.push(line);
      unitsLeft -= end * (this.#contained.secrets.size + 1);
      this.#rest = this.#rest.subarray(end);
    }
    return false;
  }

  /** The lines that came without a line break. */
  #end(): LogLine[] {
    const lines = [...this.#pieces].map(([stream, { atUs, text }]) => this.#line(stream, atUs, text));
    this.#pieces.clear();
    return lines.sort((one, other) => one.atUs - other.atUs);
  }

  #message(stream: LogStream, message: string): LogLine | undefined {
    const blank = message.indexOf(" ");
    const ns = nanosOf(message.slice(0, blank));
    const said = message.slice(blank + 1);
    if (ns !== undefined) {
      if (this.#isRepeat(stream, ns)) return undefined;
      this.#lastNs = ns;
    }
    const piece = this.#pieces.get(stream) ?? { atUs: Number((ns ?? 0n) / 1_000n), text: "" };
    // an endless line is cut, as in the logs that we keep
    if (piece.text.length <= limits.logLineBytesMax) piece.text += said;
    if (!said.endsWith("\n")) {
      this.#pieces.set(stream, piece);
      return undefined;
    }
    this.#pieces.delete(stream);
    return this.#line(stream, piece.atUs, piece.text);
  }

  /**
   * Whether the engine sends a line again: when a flood rotates its file twice at once, it reads the new one twice from
   * the beginning. A pipe's lines come in the order of their times, unless the machine's clock was set back.
   */
  #isRepeat(stream: LogStream, ns: bigint): boolean {
    const heardNs = this.#heardNs.get(stream) ?? ns;
    if (ns > heardNs || heardNs - ns > repeatsWithinNs) this.#repeated.delete(stream);
    else if (ns < heardNs) this.#repeated.add(stream);
    if (this.#repeated.has(stream)) return true;
    this.#heardNs.set(stream, ns);
    return false;
  }

  #line(stream: LogStream, atUs: number, said: string): LogLine {
    const { workerId, secrets } = this.#contained;
    const text = secrets.mask(said.replace(/\r?\n$/, ""));
    return { workerId, atUs: this.#times.next(atUs), stream, text: text.slice(0, limits.logLineBytesMax) };
  }
}

/** An engine's time in nanoseconds since 1970; undefined if it is not a time. */
function nanosOf(time: string): bigint | undefined {
  const [, seconds, fraction = ""] =
    /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(?:Z|[+-]\d\d:\d\d)$/.exec(time) ?? [];
  if (seconds === undefined) return undefined;
  const zone = time.endsWith("Z") ? "Z" : time.slice(-6);
  return BigInt(Date.parse(`${seconds}${zone}`)) * 1_000_000n + BigInt(fraction.padEnd(9, "0"));
}

const secondsOf = (ns: bigint): string => `${ns / nanosPerSecond}.${String(ns % nanosPerSecond).padStart(9, "0")}`;
