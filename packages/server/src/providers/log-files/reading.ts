import { type FileHandle, open, stat } from "node:fs/promises";
import { realTime } from "../../clock.js";
import { isOfJob, type LogLine } from "../../domain/workers/log-line.js";
import { limits } from "../../limits/index.js";
import type { LogQuery, LogSearch } from "../../provider.js";
import { logPath } from "./log-file.js";
import { readStored } from "./stored-line.js";

const lineEnd = 0x0a;

/**
 * A worker's lines from its files, in batches: first the existing lines, then new lines. `isOver` is called before each
 * look for more; once it returns true, that look is the last.
 */
export async function* readLogFiles(
  logsDir: string,
  workerId: string,
  query: LogQuery,
  isOver: () => boolean,
): AsyncGenerator<readonly LogLine[]> {
  const trail = new Trail(logPath(logsDir, workerId), workerId, query.search);
  const isWanted = wantedBy(query);
  try {
    const there = await trail.last(query.tail ?? Number.POSITIVE_INFINITY, query.sinceUs ?? 0, isWanted);
    if (there.length > 0) yield there;
    while (query.follow && !query.signal.aborted) {
      const wasOver = isOver();
      const found = await trail.next();
      const wanted = found.filter(isWanted);
      if (wanted.length > 0) yield wanted;
      if (found.length > 0) continue;
      if (wasOver) return;
      await realTime.sleep(limits.logPollMs, query.signal);
    }
  } finally {
    await trail.close();
  }
}

/** Whether a line matches the query. */
export function wantedBy({ sinceUs = 0, untilUs = Number.POSITIVE_INFINITY, jobId }: LogQuery) {
  return ({ atUs, text }: LogLine): boolean =>
    atUs >= sinceUs && atUs < untilUs && (jobId === undefined || isOfJob(text, jobId));
}

/** One of a worker's log files, open for reading. */
interface Generation {
  readonly file: FileHandle;
  readonly ino: number;
  readonly bytes: number;
  /** The time for lines without one: when the file was last written. */
  readonly writtenUs: number;
}

/** Reads both generations of a worker's log; keeps the position in the newer one up to which it has read. */
class Trail {
  readonly #path: string;
  readonly #workerId: string;
  readonly #search: LogSearch;
  #now: Generation | undefined;
  #at = 0;

  constructor(path: string, workerId: string, search: LogSearch = { bytesLeft: Number.POSITIVE_INFINITY }) {
    this.#search = search;
    this.#path = path;
    this.#workerId = workerId;
  }

  /** The last matching lines, oldest first; `next` continues after them. */
  async last(count: number, sinceUs: number, isWanted: (line: LogLine) => boolean): Promise<LogLine[]> {
    this.#now = await opened(this.#path);
    const older = await opened(`${this.#path}.1`);
    const found: LogLine[][] = [];
    let left = count;
    let bytesLeft: number = limits.logReplyBytesMax;
    try {
      // a file that was rotated just now is found under both names
      const generations = older?.ino === this.#now?.ino ? [this.#now] : [this.#now, older];
      for (const generation of generations) {
        if (!generation) continue;
        const end = await endOfLines(generation);
        if (generation === this.#now) this.#at = end;
        if (left <= 0) continue;
        for await (const block of this.#backward(generation, end)) {
          const wanted = block.filter(isWanted).slice(-left);
          found.push(wanted);
          left -= wanted.length;
          bytesLeft -= wanted.reduce((sum, { text }) => sum + text.length, 0);
          if ((block[0]?.atUs ?? 0) < sinceUs || bytesLeft <= 0) left = 0;
          if (left <= 0) break;
        }
      }
    } finally {
      await older?.file.close();
    }
    return found.reverse().flat();
  }

  /** The lines written since; empty if there are none. */
  async next(): Promise<LogLine[]> {
    this.#now ??= await opened(this.#path);
    if (!this.#now) return [];
    // checked before reading: if the file was rotated, everything left in the old one is read first
    const there = await stat(this.#path).catch(() => undefined);
    const hasGoneOn = there !== undefined && there.ino !== this.#now.ino;
    if (!hasGoneOn && there !== undefined && there.size <= this.#at) return [];
    const lines = await this.#forward(this.#now);
    if (lines.length > 0 || !hasGoneOn) return lines;
    await this.#turnPage(this.#now);
    return this.#forward(this.#now);
  }

  async close(): Promise<void> {
    await this.#now?.file.close();
  }

  /** Moves on to the next generation; if a slow reader has missed some, to the oldest that exists. */
  async #turnPage(read: Generation): Promise<void> {
    const older = await opened(`${this.#path}.1`);
    const isMissed = older !== undefined && older.ino !== read.ino;
    if (!isMissed) await older?.file.close();
    const next = isMissed ? older : await opened(this.#path);
    if (!next) return;
    await read.file.close();
    this.#now = next;
    this.#at = 0;
  }

  async #forward(generation: Generation): Promise<LogLine[]> {
    const block = await read(generation.file, this.#at, limits.logBlockBytes);
    const end = block.lastIndexOf(lineEnd) + 1;
    const lines = this.#linesOf(generation, block.subarray(0, end), this.#at);
    this.#at += end;
    return lines;
  }

  /** Blocks of whole lines, last block first. */
  async *#backward(generation: Generation, end: number): AsyncGenerator<LogLine[]> {
    let rest = Buffer.alloc(0);
    for (let at = end; at > 0 && this.#search.bytesLeft > 0; ) {
      const from = Math.max(0, at - limits.logBlockBytes);
      this.#search.bytesLeft -= at - from;
      const block = Buffer.concat([await read(generation.file, from, at - from), rest]);
      const cut = from === 0 ? 0 : block.indexOf(lineEnd) + 1;
      yield this.#linesOf(generation, block.subarray(cut), from + cut);
      rest = block.subarray(0, cut);
      at = from;
    }
  }

  #linesOf({ bytes, writtenUs }: Generation, block: Buffer, from: number): LogLine[] {
    const lines: LogLine[] = [];
    for (let start = 0; start < block.length; ) {
      const found = block.indexOf(lineEnd, start);
      const end = found < 0 ? block.length : found;
      const text = block.toString("utf8", start, end);
      // lines without a time get an approximate one, each later than the one before
      const old = { atUs: writtenUs - (bytes - from - start), stream: "stdout" as const, text };
      lines.push({ workerId: this.#workerId, ...(readStored(text) ?? old) });
      start = end + 1;
    }
    return lines;
  }
}

async function opened(path: string): Promise<Generation | undefined> {
  const file = await open(path, "r").catch(() => undefined);
  if (!file) return undefined;
  const { ino, size, mtimeMs } = await file.stat();
  return { file, ino, bytes: size, writtenUs: Math.floor(mtimeMs * 1_000) };
}

/** Where the last whole line ends; after it another one may be under way. */
async function endOfLines({ file, bytes }: Generation): Promise<number> {
  const from = Math.max(0, bytes - limits.logBlockBytes);
  return from + (await read(file, from, bytes - from)).lastIndexOf(lineEnd) + 1;
}

async function read(file: FileHandle, from: number, count: number): Promise<Buffer> {
  const block = Buffer.allocUnsafe(count);
  const { bytesRead } = await file.read(block, 0, count, from);
  return block.subarray(0, bytesRead);
}
