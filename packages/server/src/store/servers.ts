import type { HostFacts } from "../domain/hosts/host.js";
import type { ServerReport } from "../domain/hosts/server.js";
import type { Worker } from "../domain/workers/worker.js";
import type { Host, HostReport } from "./hosts.js";

/** One of the servers on a database. */
export interface Server extends ServerReport {
  readonly no: number;
  /** When it last reported that it is alive. */
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
  readonly report: ServerReport;
  /** The hosts that it tends. */
  readonly hosts: readonly HostReport[];
  readonly now: number;
  /** The time at which it and its hosts count as seen. */
  readonly seenAt: number;
  /** The leases that it wants to take, or keep until `untilAt`; any other leases that it holds are given back. */
  readonly leases: readonly string[];
  readonly untilAt: number;
  readonly signs: readonly Sign[];
}

/** What a server learns in return. */
export interface BeatReply {
  readonly leases: ReadonlySet<string>;
  readonly servers: readonly Server[];
  readonly hosts: readonly Host[];
}

/** Positions of a database's writes, for servers that keep its rows in memory. */
export interface WritePositions {
  /** For `workersSince` and `changesSince`. */
  readonly mark: string;
  /** A value per table that changes with each write; absent for a table that was never written. */
  readonly revisions: Partial<Readonly<Record<RevisedTable, string>>>;
}

export type RevisedTable = "endpoint" | "template" | "volume" | "registry_auth" | "api_key" | "user";

/** The numbers of rows that were written or deleted, by table. */
export type ChangedRows = ReadonlyMap<RevisedTable, readonly number[]>;

/** Up to `count` of the `limit` requests that all servers together may admit within the rate window. */
export interface Grant {
  readonly name: string;
  readonly limit: number;
  readonly count: number;
  readonly now: number;
}

/** What servers on one database exchange through it. */
export interface SharedStore {
  /** This server's number. */
  readonly serverNo: number;
  /** Reports that this server is alive, and resolves with the leases it holds and with every server and host. */
  beat(beat: Beat): Promise<BeatReply>;
  /** Gives back all leases of this server and marks it and its hosts as gone: they count as last seen at `seenAt`. */
  leave(left: { readonly hostNos: readonly number[]; readonly seenAt: number }): Promise<void>;
  /**
   * Deletes servers that were last seen before `before`, but keeps their counts. Deletes hosts that were last seen
   * before then and have no worker.
   */
  forgetSilent(before: number): Promise<void>;
  /** Grants requests to this server; returns their number. */
  grant(wanted: Grant): Promise<number>;
  /** Runs changes of resources one at a time, across all servers. */
  exclusively<T>(change: () => Promise<T>): Promise<T>;
  /** Lets others make changes although these servers, which are silent, are in the middle of one. */
  freeChanges(serverNos: readonly number[]): Promise<void>;
  /** What was last reported of each host, by its id. */
  hostFacts(): Promise<ReadonlyMap<string, HostFacts>>;
  /** The database's clock. */
  time(): Promise<number>;
  /** The present positions of the database's writes. */
  marks(): Promise<WritePositions>;
  /** The rows of revised tables that were changed since the mark was made, as far back as changes are kept. */
  changesSince(mark: string): Promise<ChangedRows>;
  /** Forgets changes made before the mark. */
  forgetChanges(mark: string): Promise<void>;
  /** Workers written since the mark was made, except workers that ended before `endedSince`. */
  workersSince(mark: string, endedSince: number): Promise<Worker[]>;
}
