import { closeSync, openSync, renameSync, writeSync } from "node:fs";
import { limits } from "../../limits.js";

/**
 * A worker's output in a bounded file: two generations of 4 MB. Lines that repeat are counted, not stored, and what comes
 * faster than 2,000 lines a second is counted too: a worker that spins without its server fills no disk.
 */
export class WorkerLog {
  readonly #path: string;
  /** Undefined where the file cannot be written: that costs the log, never the worker. */
  #fd: number | undefined;
  #bytes = 0;
  #last = "";
  #repeats = 0;
  #second = 0;
  #inSecond = 0;
  #bytesInSecond = 0;
  #dropped = 0;
  #pending: string[] = [];
  readonly #tail: string[] = [];
  readonly #parts = new Map<string, string>();

  constructor(path: string) {
    this.#path = path;
    this.#fd = opened(path);
  }

  /** Text of one of the worker's pipes, cut anywhere. */
  write(pipe: string, text: string): void {
    const lines = ((this.#parts.get(pipe) ?? "") + text).split("\n");
    const rest = lines.pop() ?? "";
    for (const line of lines) this.#line(line);
    if (rest.length > limits.logLineBytesMax) this.#line(rest);
    this.#parts.set(pipe, rest.length > limits.logLineBytesMax ? "" : rest);
  }

  /** Writes what is buffered. */
  flush(): void {
    if (this.#pending.length === 0) return;
    const text = `${this.#pending.join("\n")}\n`;
    this.#pending = [];
    try {
      const bytes = Buffer.byteLength(text);
      if (this.#bytes > 0 && this.#bytes + bytes > limits.logFileBytesMax) this.#rotate();
      if (this.#fd !== undefined) this.#bytes += writeSync(this.#fd, text);
    } catch {
      // a full disk
    }
  }

  /** The last lines, also those that came without a line's end. */
  tail(): string {
    const rest = [...this.#parts.values()].filter(Boolean);
    return [...this.#tail, ...rest].slice(-limits.logTailLines).join("\n").slice(-limits.logTailBytes);
  }

  close(): void {
    for (const rest of this.#parts.values()) if (rest) this.#line(rest);
    this.#parts.clear();
    this.#tellDropped();
    this.#tellRepeats();
    this.flush();
    if (this.#fd !== undefined) closeSync(this.#fd);
    this.#fd = undefined;
  }

  #line(full: string): void {
    const line = full.slice(0, limits.logLineBytesMax);
    if (line === this.#last) {
      this.#repeats++;
      return;
    }
    const second = Math.floor(Date.now() / 1_000);
    if (second !== this.#second) {
      this.#tellDropped();
      this.#second = second;
      this.#inSecond = 0;
      this.#bytesInSecond = 0;
    }
    this.#bytesInSecond += line.length;
    const isFlood = ++this.#inSecond > limits.logLinesPerSecondMax || this.#bytesInSecond > limits.logBytesPerSecondMax;
    if (isFlood) {
      this.#dropped++;
      return;
    }
    this.#tellRepeats();
    this.#last = line;
    this.#pending.push(line);
    if (line.trim() !== "") this.#tail.push(line);
    if (this.#tail.length > limits.logTailLines) this.#tail.shift();
  }

  #tellDropped(): void {
    if (this.#dropped > 0) this.#pending.push(`[${this.#dropped} more lines in that second]`);
    this.#dropped = 0;
  }

  #tellRepeats(): void {
    if (this.#repeats > 0) this.#pending.push(`[the line before came ${this.#repeats} times more]`);
    this.#repeats = 0;
  }

  #rotate(): void {
    this.#bytes = 0;
    renameSync(this.#path, `${this.#path}.1`);
    if (this.#fd !== undefined) closeSync(this.#fd);
    this.#fd = opened(this.#path);
  }
}

function opened(path: string): number | undefined {
  try {
    return openSync(path, "a", 0o600);
  } catch {
    return undefined;
  }
}
