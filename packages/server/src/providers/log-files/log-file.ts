import { closeSync, fstatSync, openSync, renameSync, writeSync } from "node:fs";
import { join } from "node:path";
import { limits } from "../../limits/index.js";

/** The file of a worker's lines; the older half is in the same path with `.1` appended. */
export const logPath = (logsDir: string, workerId: string): string => join(logsDir, `${workerId}.log`);

/** A log file that rotates when full, in two generations of bounded size. Lines that cannot be written are lost. */
export class LogFile {
  readonly #path: string;
  /** Undefined if the file cannot be written: that costs the log, never the worker. */
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
