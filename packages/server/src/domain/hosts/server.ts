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

/**
 * A server's report to the other servers: its machine's host, what waits and runs at its gate, the address where they
 * reach it, the clusters that it reaches, in order of preference, and how many changes it has made that dashboards show.
 */
export interface ServerReport {
  readonly hostNo?: number;
  readonly gate?: GateReport;
  readonly address?: ServerAddress;
  readonly clusters?: readonly NamedCluster[];
  readonly changes?: number;
}

/** Whether one server may call another. A loopback address means the same server only on the same machine. */
export const mayCall = (there: ServerAddress, here: ServerAddress): boolean =>
  !isLoopback(there.host) || (there.machine !== undefined && there.machine === here.machine);
