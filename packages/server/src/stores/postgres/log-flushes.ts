import { realTime } from "../../clock.js";
import { limits } from "../../limits/index.js";
import type { Connections } from "./connection/connections.js";

const flush = "SELECT pg_logical_emit_message(true, 'millrace', '')";

/**
 * Tiny commits of our own while a huge call is written. PostgreSQL writes its log to disk only when someone commits: by the
 * next commit, ten megabytes would have gathered there, and its caller would wait for all of them.
 */
export class LogFlushes {
  readonly #connections: Pick<Connections, "lend">;
  #writing = 0;
  #isRunning = false;

  constructor(connections: Pick<Connections, "lend">) {
    this.#connections = connections;
  }

  /** Flushes now and then until `huge` has settled, and settles as it does. */
  async during<T>(huge: Promise<T>): Promise<T> {
    this.#writing++;
    if (!this.#isRunning) void this.#run();
    try {
      return await huge;
    } finally {
      this.#writing--;
    }
  }

  async #run(): Promise<void> {
    this.#isRunning = true;
    try {
      for (;;) {
        await realTime.sleep(limits.walFlushMs);
        if (this.#writing === 0) return;
        await this.#connections.lend((connection) => connection.query(flush));
      }
    } catch {
      // this spares others a wait, and no more; what is wrong with the database is said by its calls
    } finally {
      this.#isRunning = false;
    }
  }
}
