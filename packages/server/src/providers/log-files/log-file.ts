import { closeSync, fstatSync, openSync, renameSync, writeSync } from "node:fs";
import { join } from "node:path";
import { limits } from "../../limits/index.js";

/** Where a worker's lines are kept; the older half of them is in the same path with `.1` behind it. */
export const logPath = (logsDir: string, workerId: string): string => join(logsDir, `${workerId}.log`);

/** A file that goes on in a second one when it is full: two generations of a bounded size. What cannot be written is lost. */
export class LogFile {
  readonly #path: string;
  /** Undefined where the file cannot be written: that costs the log, never the worker. */
  #fd: number | undefined;
  #bytes = 0;

  constructor(path: string) {
    this.#path = path;
    this.#open();
  }

  /** Adds whole lines. */
  append(text: string): void {
    try {
      const bytes = Buffer.byteLength(text);
      if (this.#bytes > 0 && this.#bytes + bytes > limits.logFileBytesMax) this.#rotate();
      if (this.#fd !== undefined) this.#bytes += writeSync(this.#fd, text);
    } catch {
      // a full disk
    }
  }

  close(): void {
    if (this.#fd !== undefined) closeSync(this.#fd);
    this.#fd = undefined;
  }

  #open(): void {
    try {
      this.#fd = openSync(this.#path, "a", 0o600);
      this.#bytes = fstatSync(this.#fd).size;
    } catch {
      this.#fd = undefined;
    }
  }

  #rotate(): void {
    renameSync(this.#path, `${this.#path}.1`);
    this.close();
    this.#open();
  }
}
