import { endMarked, idEntry } from "./process-table.js";

/** The name under which a keeper and all processes of its workers carry the data directory that they belong to. */
export const markName = "MILLRACE_KEEPER";

/**
 * Ends what is left of workers of one data directory. A process keeps its environment when it leaves its group, its session
 * or its parent, so that is where it is told by; only one that was given another environment is not found.
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
   * Ends all processes of this data directory: a new keeper has none of its own. Among them is a keeper that nobody reaches
   * any more, and what that one was just starting: until it runs its own program, a new process looks like its parent.
   */
  all(): Promise<void> {
    return endMarked((environment) => environment.includes(this.#mark));
  }

  /** Ends all processes of a worker. Workers that end while the table is read share the next reading. */
  worker(id: string): Promise<void> {
    this.#wanted.add(idEntry(id));
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
