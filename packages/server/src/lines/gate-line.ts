import type { Signal } from "../clock.js";
import type { GateLoad } from "../domain/scaling/gate-report.js";
import type { Worker } from "../domain/workers/worker.js";
import type { OtherServer } from "./other-servers.js";

/** A worker as the gate sees it. The row is replaced as the worker changes. */
export interface GateWorker {
  readonly row: Worker;
  /** When it was last busy. */
  busyAt: number;
}

/** A worker's place at the gate, with what this server has in flight there. */
export interface Seat {
  readonly worker: GateWorker;
  requests: number;
  /** WebSockets, which may stay for days. */
  sockets: number;
  /** The most requests it has had at a time. */
  most: number;
  /** Whether new requests may go to it. */
  isOpen: boolean;
  /** Orders seats by when they last got a request: the highest number is the latest. */
  turn: number;
}

/** A request that waits for a worker. */
export interface Standing {
  readonly since: number;
  readonly tried: ReadonlySet<number>;
  readonly isSocket: boolean;
  readonly give: (found: Found | undefined) => void;
}

/** Where a request goes: a worker that this server can reach, or another server that has one. */
export type Found = Seat | OtherServer;

/** All that the gate knows of one endpoint. */
export interface Line {
  readonly endpointNo: number;
  readonly seats: Seat[];
  readonly standing: Set<Standing>;
  inFlight: number;
  /** The most in flight since the scaler was last rung, and in the interval before that. */
  peak: number;
  peakBefore: number;
  completed: number;
  failed: number;
  retried: number;
  /** Whether a ring for its scaler is scheduled. */
  isRinging: boolean;
}

/** How a request waits. */
export interface Wait {
  readonly ms: number;
  readonly isSocket: boolean;
  readonly signals: readonly Signal[];
  /** Workers that have failed this request: they are tried last. */
  readonly tried?: ReadonlySet<number> | undefined;
}

/** An empty line. */
export const newLine = (endpointNo: number): Line => ({
  endpointNo,
  seats: [],
  standing: new Set(),
  inFlight: 0,
  peak: 0,
  peakBefore: 0,
  completed: 0,
  failed: 0,
  retried: 0,
  isRinging: false,
});

/** What waits and runs in a line: the scaler's input. */
export function loadOf(line: Line): GateLoad {
  const { standing, inFlight, completed, failed, retried } = line;
  const peak = Math.max(line.peak, line.peakBefore);
  const [oldest] = standing;
  const waiting = standing.size;
  return { waiting, ...(oldest ? { oldestAt: oldest.since } : {}), inFlight, peak, completed, failed, retried };
}

/** Whether new requests may go to this worker. */
export const mayServe = ({ isOpen, worker: { row } }: Seat): boolean =>
  isOpen && row.wanted === "running" && row.endedAt === undefined;
