import { limits } from "../limits/index.js";
import type { ChangedRows, RevisedTable, SharedStore } from "../store/index.js";
import type { Writes } from "./writes.js";

/** Where this server has read up to in the changes of a database that several servers share. */
export class Cursor {
  readonly #shared: SharedStore | undefined;
  readonly #writes: Writes;
  readonly #caches: Readonly<Record<RevisedTable, object>>;
  #revisions: Partial<Readonly<Record<RevisedTable, string>>> = {};
  /** Taken with the revisions: what was written after it has yet to be read. */
  #mark: string | undefined;
  #lookedAt = 0;
  /** The mark of the last {@link forget}. */
  #oldMark: string | undefined;

  /** `caches`: what holds each table's rows in memory. */
  constructor(shared: SharedStore | undefined, writes: Writes, caches: Readonly<Record<RevisedTable, object>>) {
    this.#shared = shared;
    this.#writes = writes;
    this.#caches = caches;
  }

  /** Notes the rows that were changed since the last look, for the caches to read. Returns the present mark. */
  async look(now: number): Promise<string | undefined> {
    const shared = this.#shared;
    const tables = Object.keys(this.#caches) as RevisedTable[];
    if (!shared) {
      for (const table of tables) this.#writes.note(this.#caches[table], "all");
      return undefined;
    }
    const { mark, revisions } = await shared.marks();
    const changed = tables.filter(
      (table) => revisions[table] === undefined || revisions[table] !== this.#revisions[table],
    );
    const rows = changed.length === 0 ? none : await this.#rowsSince(shared, now);
    for (const table of changed) {
      const nos = revisions[table] === undefined ? [] : (rows.get(table) ?? []);
      // a user's role is in its keys, too
      this.#writes.note(this.#caches[table], nos.length === 0 || table === "user" ? "all" : nos);
    }
    this.#mark = mark;
    this.#revisions = revisions;
    this.#lookedAt = now;
    return mark;
  }

  /** Nothing if changes since the last look may be forgotten already. */
  async #rowsSince(shared: SharedStore, now: number): Promise<ChangedRows> {
    const isRecent = this.#mark !== undefined && now < this.#lookedAt + limits.changesTrustedMs;
    return isRecent ? shared.changesSince(this.#mark as string) : none;
  }

  /** Forgets the changes made before the last call. */
  async forget(): Promise<void> {
    const old = this.#oldMark;
    this.#oldMark = this.#mark;
    if (old !== undefined) await this.#shared?.forgetChanges(old);
  }
}

const none: ChangedRows = new Map();
