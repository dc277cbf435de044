import type { SaidFacts } from "../domain/hosts/host.js";
import type { Worker } from "../domain/workers/worker.js";

export interface HostStore {
  /** The number of the host with this id; a new host is added. */
  ensure(id: string, now: number): Promise<number>;
}

/** A machine or cluster that runs workers, with one Millrace server. */
export interface Host extends SaidFacts {
  readonly no: number;
  /** When its server last reported that it is alive. */
  readonly seenAt: number;
}

/** What a server has heard from a worker, to be shared with other servers. Times are in milliseconds. */
export interface Sign {
  readonly workerNo: number;
  readonly seenAt: number;
  readonly busyAt: number;
  readonly polledAt: number;
  readonly slots: number;
}

/** What a server reports once a second. */
export interface Beat {
  readonly hostNo: number;
  readonly facts: SaidFacts;
  readonly now: number;
  /** The time at which its host counts as seen. */
  readonly seenAt: number;
  /** The leases that it wants to take or keep, until then; all others that it holds are given back. */
  readonly leases: readonly string[];
  readonly untilAt: number;
  readonly signs: readonly Sign[];
}

/** Positions of a database's writes, for servers that keep its rows in memory. */
export interface Marks {
  /** For `workersSince`. */
  readonly workers: string;
  /** A value per table that changes with each write; absent for a table that was never written. */
  readonly revisions: Partial<Readonly<Record<RevisedTable, string>>>;
}

/** `access`: keys and users together. */
export type RevisedTable = "endpoint" | "template" | "volume" | "registry_auth" | "access";

/** What servers on one database exchange through it. */
export interface SharedStore {
  /** Reports that this server is alive, and resolves with the leases it holds and with every host. */
  beat(beat: Beat): Promise<{ leases: ReadonlySet<string>; hosts: Host[] }>;
  /** Gives back all leases of a host and marks it as gone: it counts as last seen at `seenAt`. */
  leave(hostNo: number, seenAt: number): Promise<void>;
  /** Deletes hosts that were last seen before `before` and have no live worker; their counts are kept. */
  forgetHosts(before: number): Promise<void>;
  /** Grants up to `count` of the `limit` requests that all servers together may admit within the rate window. */
  grant(name: string, limit: number, count: number, now: number): Promise<number>;
  /** Runs changes of resources one at a time, across all servers. */
  exclusively<T>(change: () => Promise<T>): Promise<T>;
  /** The database's clock. */
  time(): Promise<number>;
  /** The present positions of the database's writes. */
  marks(): Promise<Marks>;
  /** Workers written since the mark was made, except those that ended before `endedSince`. */
  workersSince(mark: string, endedSince: number): Promise<Worker[]>;
}
