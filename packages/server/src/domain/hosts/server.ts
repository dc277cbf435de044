import type { GateReport } from "../scaling/gate-report.js";
import { isLoopback } from "../workers/worker-address.js";
import type { NamedCluster } from "./server-clusters.js";

/** The address at which other servers reach this one. */
export interface ServerAddress {
  readonly host: string;
  readonly port: number;
  /** Identifies its machine and the network that it sees there; undefined if unknown. */
  readonly machine?: string;
}

/** What a server does to start a worker, if that takes long; whether its cluster has no room for it, and none in sight. */
export interface StartNote {
  readonly doing: string;
  readonly isFull?: boolean;
}

/**
 * A server's report to the other servers: its machine's host, what waits and runs at its gate, the address where they
 * reach it, the clusters that it reaches, in order of preference, how much has changed there that dashboards show, by the
 * numbers of owners, and what it does to start workers, by their numbers.
 */
export interface ServerReport {
  readonly hostNo?: number;
  readonly gate?: GateReport;
  readonly address?: ServerAddress;
  readonly clusters?: readonly NamedCluster[];
  readonly changes?: Readonly<Record<number, number>>;
  readonly starts?: Readonly<Record<string, StartNote>>;
}

/** Whether one server may call another. A loopback address means the same server only on the same machine. */
export const mayCall = (there: ServerAddress, here: ServerAddress): boolean =>
  !isLoopback(there.host) || (there.machine !== undefined && there.machine === here.machine);
