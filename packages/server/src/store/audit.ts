import { AsyncLocalStorage } from "node:async_hooks";
import type { Actor, AuditEntry, Change } from "../domain/access/audit.js";

/** Selects entries of the audit log. */
export interface AuditQuery {
  /** Only changes made with this user's keys. */
  readonly userNo?: number | undefined;
  /** The same of a user who may be deleted: no index has it, so prefer `userNo`. */
  readonly userId?: string | undefined;
  readonly keyId?: string | undefined;
  readonly action?: string | undefined;
  readonly resource?: string | undefined;
  readonly sinceAt?: number | undefined;
  readonly untilAt?: number | undefined;
  /** Only entries older than this one. */
  readonly beforeNo?: number | undefined;
  readonly limit: number;
}

/** What was found among a bounded number of entries. */
export interface AuditPage {
  /** Newest first. */
  readonly entries: AuditEntry[];
  /** Older entries than this one were not looked at; undefined if there are none. */
  readonly lookedTo: number | undefined;
}

export interface AuditStore {
  /** Looks for entries from the newest on, among the user's, the resource's or all. */
  list(query: AuditQuery): Promise<AuditPage>;
  /** Deletes a user's oldest entries beyond the newest `keep`, at most so many; returns how many were deleted. */
  trim(userNo: number, keep: number, most: number): Promise<number>;
  /** Deletes entries made before a time, at most so many; returns how many were deleted. */
  forget(before: number, most: number): Promise<number>;
}

/** An entry that is written with the next write. */
export type NewAuditEntry = Omit<AuditEntry, "no">;

interface Making {
  readonly actor: Actor;
  readonly changes: Change[];
}

/**
 * Changes that callers make. What an operation notes is stored by the next write that it makes, in the same commit: so
 * there is no change without its entry, and no entry without its change.
 */
class Auditing {
  readonly #making = new AsyncLocalStorage<Making>();

  /** Runs an operation for an actor. */
  run<T>(actor: Actor, make: () => Promise<T>): Promise<T> {
    return this.#making.run({ actor, changes: [] }, make);
  }

  /** Notes the change that the operation's next write makes, if it makes one. */
  note(change: Change | undefined): void {
    if (change !== undefined) this.#making.getStore()?.changes.push(change);
  }

  /** Takes the entries that belong to this write. */
  take(): NewAuditEntry[] {
    const making = this.#making.getStore();
    return making === undefined ? [] : making.changes.splice(0).map((change) => ({ ...making.actor, ...change }));
  }
}

export const auditing = new Auditing();
