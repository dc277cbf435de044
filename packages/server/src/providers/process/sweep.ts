import { endMarked, idEntries } from "./process-table.js";

/** The environment variable by which a keeper, and all processes of its workers, carry their data directory's mark. */
export const markName = "MILLRACE_KEEPER";

/**
 * Ends leftover worker processes of one data directory. A process keeps its environment when it leaves its group,
 * session or parent, so it is recognised by that; only a process given another environment is missed.
 */
export class Sweep {
  readonly #mark: string;
  #wanted = new Set<string>();
  #running: Promise<void> = Promise.resolve();
  #next: Promise<void> | undefined;

  constructor(mark: string) {
    this.#mark = `${markName}=${mark}`;
  }

  /**
   * Ends all processes of this data directory; a new keeper has none of its own yet. They include a keeper that no
   * server can reach, and processes it was just starting: until a new process runs its program, it looks like its
   * parent.
   */
  all(): Promise<void> {
    return endMarked((environment) => environment.includes(this.#mark));
  }

  /** Ends all processes of a worker. Workers that end while the table is being read share the next read. */
  worker(id: string): Promise<void> {
    for (const entry of idEntries(id)) this.#wanted.add(entry);
    this.#next ??= this.#running.then(() => {
      const wanted = this.#wanted;
      this.#wanted = new Set();
      this.#next = undefined;
      this.#running = endMarked(
        (environment) => environment.includes(this.#mark) && environment.some((entry) => wanted.has(entry)),
      );
      return this.#running;
    });
    return this.#next;
  }
}
