import { rmSync } from "node:fs";
import type { Readable } from "node:stream";
import { setTimeout as pause, setImmediate as turn } from "node:timers/promises";
import type Docker from "dockerode";
import type { HiddenTexts, LogLine, LogStream } from "../../domain/workers/log-line.js";
import { limits } from "../../limits/index.js";
import type { LogQuery } from "../../provider.js";
import { LogFile, logPath } from "../log-files/log-file.js";
import { wantedBy } from "../log-files/reading.js";
import { LineTimes, storedLine } from "../log-files/stored-line.js";
import { answered, statusOf } from "./failures.js";

/** A worker's container, and what its log must not show. */
export interface Contained {
  readonly workerId: string;
  readonly container: Docker.Container;
  readonly secrets: HiddenTexts;
}

/** The worker's own secret, which the engine knows of its container. */
export const secretIn = ({ Config }: Docker.ContainerInspectInfo): string | undefined =>
  (Config.Env ?? []).find((each) => each.startsWith("RUNPOD_AI_API_KEY="))?.slice("RUNPOD_AI_API_KEY=".length);

/**
 * The lines of a container that is there: those that its engine keeps, then those that come until it has ended. Where none of
 * those kept are wanted, it begins at `askedAt`, in milliseconds of the engine's clock.
 */
export async function* containerLogs(
  contained: Contained,
  host: string,
  query: LogQuery,
  askedAt: number,
): AsyncGenerator<readonly LogLine[]> {
  const isWanted = wantedBy(query);
  const lines = new EngineLines(contained);
  // the engine does not know whose a line is
  const tail = query.jobId === undefined ? query.tail && query.tail + limits.logBurstLines : undefined;
  const since = lines.sinceOf(query.sinceUs);
  const there = tail === 0 ? Buffer.alloc(0) : await stored(contained, host, { since, tail, signal: query.signal });
  if (tail === 0) lines.beginAt(askedAt);
  if (query.search) query.search.bytesLeft -= there.length;
  const last = [...lines.push(there), ...(query.follow ? [] : lines.end())].filter(isWanted);
  const found = query.tail === undefined ? last : last.slice(Math.max(0, last.length - query.tail));
  if (found.length > 0) yield found;
  while (query.follow && !query.signal.aborted) {
    for await (const batch of come(contained.container, lines, query.signal)) {
      const wanted = batch.filter(isWanted);
      if (wanted.length > 0) yield wanted;
    }
    // an engine that starts anew hangs up, and its containers live on
    if (query.signal.aborted || (await hasEnded(contained, host, query.signal))) break;
  }
  if (!query.follow || query.signal.aborted) return;
  // the engine may hang up before it has sent the last words
  lines.dropFrame();
  const left = await stored(contained, host, { since: lines.since, signal: query.signal }).catch(nothing);
  const rest = [...lines.push(left), ...lines.end()].filter(isWanted);
  if (rest.length > 0) yield rest;
}

/** What there is to read of a container that was removed meanwhile. */
const nothing = () => Buffer.alloc(0);

/** Writes what a container said to the files of its worker, before it is removed. */
export async function keepContainerLog(contained: Contained, host: string, logsDir: string): Promise<void> {
  const lines = new EngineLines(contained);
  const there = await stored(contained, host, {});
  const said = [...lines.push(there), ...lines.end()];
  const path = logPath(logsDir, contained.workerId);
  for (const each of [path, `${path}.1`]) rmSync(each, { force: true }); // what was begun before a crash is begun anew
  const file = new LogFile(path);
  for (let at = 0; at < said.length; at += linesPerTurn) {
    const some = said.slice(at, at + linesPerTurn);
    file.append(some.map(({ atUs, stream, text }) => `${storedLine(atUs, stream, text)}\n`).join(""));
    await turn();
  }
  file.close();
}

const linesPerTurn = 1_000;

/** What the engine keeps of a container's output, in its frames: bounded by how it was told to keep it. */
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
// the engine takes nanoseconds behind a point, which a number would lose
const sinceOption = (since: string | undefined) => (since === undefined ? {} : { since: since as unknown as number });

/** What comes after the last line, until the engine hangs up. */
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
      const found = lines.push(chunk as Buffer);
      if (found.length > 0) yield found;
    }
  } catch {
    // it is away, or we are: who asked looks again, or not
  } finally {
    signal.removeEventListener("abort", leave);
    leave();
  }
}

/** Whether a container has ended, or is gone; an engine that is away is asked again. */
async function hasEnded({ container }: Contained, host: string, signal: AbortSignal): Promise<boolean> {
  while (!signal.aborted) {
    try {
      const isRunning = (await answered(container.inspect(), host)).State.Running;
      if (isRunning) await pause(limits.logPassMs, undefined, { signal }).catch(() => {});
      return !isRunning;
    } catch (error) {
      if (statusOf(error) === 404) return true;
      await pause(limits.engineRetryMs, undefined, { signal }).catch(() => {});
    }
  }
  return true;
}

const headerBytes = 8;
const nanosPerSecond = 1_000_000_000n;

/** Reads lines out of the engine's frames: each has a header with its pipe and its length, and holds a time and a line, or a piece of a long one. */
class EngineLines {
  readonly #contained: Contained;
  readonly #times = new LineTimes();
  readonly #pieces = new Map<LogStream, { atUs: number; text: string }>();
  #rest: Buffer = Buffer.alloc(0);
  #lastNs: bigint | undefined;
  #sinceNs: bigint | undefined;

  constructor(contained: Contained) {
    this.#contained = contained;
  }

  /** Where the engine is to go on: behind the last line, or where the reading was to begin. */
  get since(): string | undefined {
    const from = this.#lastNs === undefined ? this.#sinceNs : this.#lastNs + 1n;
    return from === undefined ? undefined : secondsOf(from);
  }

  /** Begins at this microsecond, or a little earlier: a burst's lines are shown later than the engine has them. */
  sinceOf(us: number | undefined): string | undefined {
    if (us !== undefined) this.#sinceNs = BigInt(Math.max(0, Math.floor(us) - limits.logBurstUs)) * 1_000n;
    return this.since;
  }

  /** Begins with what comes from this millisecond on. */
  beginAt(ms: number): void {
    this.#sinceNs = BigInt(ms) * 1_000_000n;
  }

  /** What a connection left of a frame is not gone on with by the next one. */
  dropFrame(): void {
    this.#rest = Buffer.alloc(0);
  }

  push(chunk: Buffer): LogLine[] {
    let rest = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    const lines: LogLine[] = [];
    while (rest.length >= headerBytes) {
      const end = headerBytes + rest.readUInt32BE(4);
      if (rest.length < end) break;
      const line = this.#message(rest[0] === 2 ? "stderr" : "stdout", rest.toString("utf8", headerBytes, end));
      if (line) lines.push(line);
      rest = rest.subarray(end);
    }
    this.#rest = rest;
    return lines;
  }

  /** What came without a line's end. */
  end(): LogLine[] {
    const lines = [...this.#pieces].map(([stream, { atUs, text }]) => this.#line(stream, atUs, text));
    this.#pieces.clear();
    return lines.sort((one, other) => one.atUs - other.atUs);
  }

  #message(stream: LogStream, message: string): LogLine | undefined {
    const blank = message.indexOf(" ");
    const ns = nanosOf(message.slice(0, blank));
    const said = message.slice(blank + 1);
    if (ns !== undefined) this.#lastNs = ns;
    const piece = this.#pieces.get(stream) ?? { atUs: Number((ns ?? 0n) / 1_000n), text: "" };
    // a line that never ends is cut, as it is where we keep it
    if (piece.text.length <= limits.logLineBytesMax) piece.text += said;
    if (!said.endsWith("\n")) {
      this.#pieces.set(stream, piece);
      return undefined;
    }
    this.#pieces.delete(stream);
    return this.#line(stream, piece.atUs, piece.text);
  }

  #line(stream: LogStream, atUs: number, said: string): LogLine {
    const { workerId, secrets } = this.#contained;
    const text = secrets.mask(said.replace(/\r?\n$/, ""));
    return { workerId, atUs: this.#times.next(atUs), stream, text: text.slice(0, limits.logLineBytesMax) };
  }
}

/** Nanoseconds since 1970 of the engine's own times; undefined where it is none. */
function nanosOf(time: string): bigint | undefined {
  const [, seconds, fraction = ""] =
    /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(?:Z|[+-]\d\d:\d\d)$/.exec(time) ?? [];
  if (seconds === undefined) return undefined;
  const zone = time.endsWith("Z") ? "Z" : time.slice(-6);
  return BigInt(Date.parse(`${seconds}${zone}`)) * 1_000_000n + BigInt(fraction.padEnd(9, "0"));
}

const secondsOf = (ns: bigint): string => `${ns / nanosPerSecond}.${String(ns % nanosPerSecond).padStart(9, "0")}`;
