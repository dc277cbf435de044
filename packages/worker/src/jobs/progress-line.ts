import type { Connection } from "../connection.js";
import { toJson } from "../json.js";
import type { Log } from "../log.js";

/** A job's progress on its way to the server: only the newest value matters, and none is retried. */
export class ProgressLine {
  readonly #connection: Connection;
  readonly #url: string;
  readonly #log: Log;
  #newest: string | undefined;
  #sending: Promise<void> | undefined;
  #isOver = false;

  constructor(parts: { connection: Connection; url: string; log: Log }) {
    this.#connection = parts.connection;
    this.#url = parts.url;
    this.#log = parts.log;
  }

  /** Sends a value; it replaces one that still waits. Resolves when nothing waits any more. */
  async add(value: unknown): Promise<void> {
    if (this.#isOver) return;
    try {
      this.#newest = toJson(value, "the job's progress");
    } catch (error) {
      this.#log.warn((error as Error).message);
      return;
    }
    this.#sending ??= this.#sendAll();
    await this.#sending;
  }

  /** Sends nothing more: progress that arrives after the job's end would only confuse. */
  close(): void {
    this.#isOver = true;
    this.#newest = undefined;
  }

  async #sendAll(): Promise<void> {
    while (this.#newest !== undefined) {
      const body = `{"status":"IN_PROGRESS","output":${this.#newest}}`;
      this.#newest = undefined;
      await this.#connection.call("POST", this.#url, { body });
    }
    this.#sending = undefined;
  }
}
