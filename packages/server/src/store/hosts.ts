import type { SaidFacts } from "../domain/hosts/host.js";
import type { Worker } from "../domain/workers/worker.js";

export interface HostStore {
  /** The number of the host with this id, made where it is new. */
  ensure(id: string, now: number): Promise<number>;
}

/** A machine, or a cluster, that runs workers: one server of ours is there. */
export interface Host extends SaidFacts {
  readonly no: number;
  /** When its server last said that it lives. */
  readonly seenAt: number;
}

/** What a server has heard of a worker, for the others. Times are milliseconds. */
export interface Sign {
  readonly workerNo: number;
  readonly seenAt: number;
  readonly busyAt: number;
  readonly polledAt: number;
  readonly slots: number;
}

/** What a server says once a second. */
export interface Beat {
  readonly hostNo: number;
  readonly facts: SaidFacts;
  readonly now: number;
  /** When its host counts as seen. */
  readonly seenAt: number;
  /** The leases it wants to have, or to keep, until then; what it has beside them it gives back. */
  readonly leases: readonly string[];
  readonly untilAt: number;
  readonly signs: readonly Sign[];
}

/** How far the writes of a database have come, for servers that hold what it holds in memory. */
export interface Marks {
  /** For `workersSince`. */
  readonly workers: string;
  /** What changes with each write to a table; undefined for a table that was never written. */
  readonly revisions: Partial<Readonly<Record<RevisedTable, string>>>;
}

/** `access`: keys and users together. */
export type RevisedTable = "endpoint" | "template" | "volume" | "registry_auth" | "access";

/** What servers on one database tell each other through it. */
export interface SharedStore {
  /** Says that we live, and resolves with the leases that are ours, and with every host. */
  beat(beat: Beat): Promise<{ leases: ReadonlySet<string>; hosts: Host[] }>;
  /** Gives all leases of a host back, and says that it is gone: it counts as last seen at `seenAt`. */
  leave(hostNo: number, seenAt: number): Promise<void>;
  /** Forgets hosts that were last seen before `before` and have no live worker; what they have counted stays. */
  forgetHosts(before: number): Promise<void>;
  /** Takes up to `count` of the `limit` requests that all servers together may let in within the rate window. */
  grant(name: string, limit: number, count: number, now: number): Promise<number>;
  /** Runs one change of resources at a time, over all servers. */
  exclusively<T>(change: () => Promise<T>): Promise<T>;
  /** The database's clock. */
  time(): Promise<number>;
  /** How far the database's writes have come. */
  marks(): Promise<Marks>;
  /** The workers that were written since the mark was made, but for those that ended before `endedSince`. */
  workersSince(mark: string, endedSince: number): Promise<Worker[]>;
}
