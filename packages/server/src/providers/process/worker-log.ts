import { realTime, type Timer } from "../../clock.js";
import { HiddenTexts } from "../../domain/workers/log-line.js";
import { limits } from "../../limits/index.js";
import { LogFile } from "../log-files/log-file.js";
import { LineTimes, storedLine } from "../log-files/stored-line.js";

type Pipe = "stdout" | "stderr";

/**
 * Writes a worker's output to a bounded file, each line with its time and pipe. Repeated lines are counted, not stored,
 * and so are lines beyond 2,000 a second: a worker that loops because its server is away does not fill the disk.
 */
export class WorkerLog {
  readonly #file: LogFile;
  readonly #secrets: HiddenTexts;
  readonly #times = new LineTimes();
  #last: string | undefined;
  #lastPipe: Pipe = "stdout";
  #repeats = 0;
  #repeatsToldAt = 0;
  #second = 0;
  #inSecond = 0;
  #bytesInSecond = 0;
  #dropped = 0;
  #pending: string[] = [];
  #timer: Timer | undefined;
  readonly #tail: string[] = [];
  readonly #parts = new Map<Pipe, string>();

  /** `secrets` are masked before anything is stored. */
  constructor(path: string, secrets: readonly string[] = []) {
    this.#file = new LogFile(path);
    this.#secrets = new HiddenTexts(secrets);
  }

  /** Masks another secret from now on. */
  hide(secret: string): void {
    this.#secrets.add(secret);
  }

  /** Takes text from one of the worker's pipes, cut anywhere. */
  write(pipe: Pipe, text: string): void {
    const lines = ((this.#parts.get(pipe) ?? "") + text).split("\n");
    const rest = lines.pop() ?? "";
    for (const line of lines) this.#line(pipe, line);
    if (rest.length > limits.logLineBytesMax) this.#line(pipe, rest);
    this.#parts.set(pipe, rest.length > limits.logLineBytesMax ? "" : rest);
  }

  /** Writes counts that have waited too long for another line, so that readers see that the worker goes on. */
  tellCounts(): void {
    if (this.#dropped > 0 && secondOf(realTime.wallMs()) !== this.#second) this.#tellDropped();
    if (this.#repeats > 0 && realTime.wallMs() - this.#repeatsToldAt >= limits.logRepeatsToldMs) this.#tellRepeats();
  }

  /** Writes the buffer to the file. */
  flush(): void {
    realTime.cancel(this.#timer);
    this.#timer = undefined;
    if (this.#pending.length === 0) return;
    const text = `${this.#pending.join("\n")}\n`;
    this.#pending = [];
    this.#file.append(text);
  }

  /** The last lines, including unfinished ones. */
  tail(): string {
    const rest = [...this.#parts.values()].filter(Boolean).map((text) => this.#secrets.mask(text));
    return [...this.#tail, ...rest].slice(-limits.logTailLines).join("\n").slice(-limits.logTailBytes);
  }

  close(): void {
    for (const [pipe, rest] of this.#parts) if (rest) this.#line(pipe, rest);
    this.#parts.clear();
    this.#tellDropped();
    this.#tellRepeats();
    this.flush();
    this.#file.close();
  }

  #line(pipe: Pipe, full: string): void {
    const said = full.endsWith("\r") ? full.slice(0, -1) : full;
    if (said === this.#last && pipe === this.#lastPipe) {
      this.#repeats++;
      return;
    }
    const second = secondOf(realTime.wallMs());
    if (second !== this.#second) {
      this.#tellDropped();
      this.#second = second;
      this.#inSecond = 0;
      this.#bytesInSecond = 0;
    }
    this.#bytesInSecond += Math.min(said.length, limits.logLineBytesMax);
    const isFlood = ++this.#inSecond > limits.logLinesPerSecondMax || this.#bytesInSecond > limits.logBytesPerSecondMax;
    if (isFlood) {
      this.#dropped++;
      return;
    }
    this.#tellRepeats();
    // not earlier: each secret costs a search, and one keeper handles the lines of all local workers
    const line = this.#secrets.mask(said).slice(0, limits.logLineBytesMax);
    this.#last = said;
    this.#lastPipe = pipe;
    this.#repeatsToldAt = realTime.wallMs();
    this.#store(line);
    if (line.trim() !== "") this.#tail.push(line);
    if (this.#tail.length > limits.logTailLines) this.#tail.shift();
  }

  #tellDropped(): void {
    const dropped = this.#dropped;
    this.#dropped = 0;
    if (dropped > 0) this.#store(`[${dropped} more lines in that second]`);
  }

  #tellRepeats(): void {
    const repeats = this.#repeats;
    this.#repeats = 0;
    this.#repeatsToldAt = realTime.wallMs();
    if (repeats > 0) this.#store(`[the line before came ${repeats === 1 ? "once more" : `${repeats} more times`}]`);
  }

  #store(line: string): void {
    this.#pending.push(storedLine(this.#times.next(realTime.wallMs() * 1_000), this.#lastPipe, line));
    // many lines become one write, and a follower hardly waits
    this.#timer ??= realTime.after(limits.logFlushMs, () => this.flush()).unref();
  }
}

const secondOf = (ms: number) => Math.floor(ms / 1_000);
