import type { Clock } from "../clock.js";
import { addLoads, type GateLoad, type GateReport, noLoad } from "../domain/scaling/gate-report.js";
import type { Worker } from "../domain/workers/worker.js";
import { limits } from "../limits/index.js";
import {
  type Found,
  type GateWorker,
  type Line,
  loadOf,
  mayServe,
  newLine,
  type Seat,
  type Standing,
  type Wait,
} from "./gate-line.js";
import { type OtherServer, OtherServers } from "./other-servers.js";

export interface GateParts {
  readonly clock: Pick<Clock, "now" | "sleep" | "after">;
  /** Demand has changed. `isUrgent`: a request waits, and none was waiting before. */
  readonly onDemand: (endpointNo: number, isUrgent: boolean) => void;
  /** A worker has had more requests in flight at a time than any earlier worker of its version. */
  readonly onSlots: (row: Worker, slots: number) => void;
  /** A worker was opened: requests waiting at other servers may go to it. */
  readonly onOpen?: () => void;
}

const none: ReadonlySet<number> = new Set();
/** Added to the load of workers that have failed a request already. */
const triedLast = 1e6;

/**
 * Balances requests over workers: each goes at once to the least-loaded healthy worker. If there is none, requests
 * wait, first in, first out, bounded in number and time. Also counts what is in flight.
 */
export class Gate {
  readonly #parts: GateParts;
  readonly #lines = new Map<number, Line>();
  readonly #seats = new Map<number, Seat>(); // by worker
  readonly #suspects = new Set<number>();
  #elsewhere: readonly GateReport[] = [];
  readonly #others = new OtherServers();
  #turns = 0;
  /** Called when a worker should be asked for its health at once. */
  onSuspect: () => void = () => {};

  constructor(parts: GateParts) {
    this.#parts = parts;
  }

  /** Marks a worker healthy and gives it waiting requests. */
  open(worker: GateWorker): void {
    const { endpointNo } = worker.row;
    const seat = this.#seatOf(worker);
    const isNew = !seat.isOpen;
    seat.isOpen = true;
    this.#serve(this.#lineOf(endpointNo));
    if (isNew) this.#parts.onOpen?.();
  }

  /** Sends no new requests to a worker; those in flight go on. */
  shut(workerNo: number): void {
    const seat = this.#seats.get(workerNo);
    if (seat) seat.isOpen = false;
  }

  /** Forgets a worker that has ended. */
  forget(workerNo: number): void {
    const seat = this.#seats.get(workerNo);
    this.#suspects.delete(workerNo);
    if (!seat) return;
    seat.isOpen = false;
    this.#seats.delete(workerNo);
    const { seats } = this.#lineOf(seat.worker.row.endpointNo);
    seats.splice(seats.indexOf(seat), 1);
  }

  isOpen = (workerNo: number): boolean => this.#seats.get(workerNo)?.isOpen ?? false;

  /** A request failed at this worker: ask for its health now. */
  suspect(workerNo: number): void {
    if (!this.#seats.has(workerNo)) return; // a worker's last requests may end after it has
    this.#suspects.add(workerNo);
    this.onSuspect();
  }

  /** Whether a worker was suspected since the last call. */
  wasSuspected = (workerNo: number): boolean => this.#suspects.delete(workerNo);

  /**
   * The least-loaded healthy worker, workers in `tried` last. Of equally loaded workers, the most recently busy one, so
   * that the others become idle.
   */
  take(endpointNo: number, isSocket: boolean, tried = none): Seat | undefined {
    const line = this.#lines.get(endpointNo);
    if (!line) return undefined;
    let best: Seat | undefined;
    let bestLoad = 0;
    for (const seat of line.seats) {
      const { row } = seat.worker;
      if (!mayServe(seat)) continue;
      let load = seat.requests + seat.sockets;
      if (tried.has(row.no)) load += triedLast;
      for (const { workers } of this.#elsewhere) load += workers[row.no] ?? 0;
      if (best && (load > bestLoad || (load === bestLoad && seat.turn < best.turn))) continue;
      best = seat;
      bestLoad = load;
    }
    if (best) this.#begin(line, best, isSocket);
    return best;
  }

  /** Another server that has a healthy worker for this endpoint. */
  other = (endpointNo: number): OtherServer | undefined => this.#others.find(endpointNo, this.#parts.clock.now());

  /** Passes no requests to a server for `ms`, either of one endpoint or of all, depending on what failed. */
  avoid({ serverNo }: OtherServer, ms: number, endpointNo?: number): void {
    this.#others.avoid(serverNo, this.#parts.clock.now() + ms, endpointNo);
  }

  /** Ends a request or WebSocket that `take` began. */
  release(seat: Seat, isSocket: boolean, outcome: "completed" | "failed" | "retried"): void {
    if (isSocket) seat.sockets--;
    else seat.requests--;
    const { endpointNo } = seat.worker.row;
    const line = this.#lineOf(endpointNo);
    line.inFlight--;
    line[outcome]++;
    seat.worker.busyAt = this.#parts.clock.now();
    this.#ringSoon(endpointNo, line);
  }

  /** Whether no further request may wait. */
  isFull = (endpointNo: number): boolean => (this.#lines.get(endpointNo)?.standing.size ?? 0) >= limits.gateWaitingMax;

  /**
   * Waits until a worker is healthy, here or at another server; undefined after `ms`, or when one of `signals` aborts.
   */
  async stand(endpointNo: number, { ms, isSocket, signals, tried = none }: Wait): Promise<Found | undefined> {
    const line = this.#lineOf(endpointNo);
    const over = new AbortController();
    return new Promise<Found | undefined>((resolve) => {
      const leave = () => standing.give(undefined);
      const standing: Standing = {
        since: this.#parts.clock.now(),
        tried,
        isSocket,
        give: (found) => {
          if (!line.standing.delete(standing)) return;
          over.abort();
          for (const signal of signals) signal.removeEventListener("abort", leave);
          resolve(found);
          this.#ringSoon(endpointNo, line);
        },
      };
      line.standing.add(standing);
      for (const signal of signals) signal.addEventListener("abort", leave);
      if (signals.some((signal) => signal.aborted)) return leave();
      void this.#parts.clock.sleep(ms, over.signal).then(leave);
      this.#serve(line);
      if (line.standing.has(standing)) this.#parts.onDemand(endpointNo, line.standing.size === 1);
    });
  }

  /** What waits and runs, here and at the other servers: the scaler's input. */
  loadOf(endpointNo: number): GateLoad {
    const others = this.#elsewhere.map(({ endpoints }) => endpoints[endpointNo] ?? noLoad);
    return addLoads([this.#ownLoad(endpointNo), ...others]);
  }

  /** How many requests and WebSockets a worker has in flight, over all servers. */
  heldBy(workerNo: number): number {
    const seat = this.#seats.get(workerNo);
    const others = this.#elsewhere.reduce((sum, { workers }) => sum + (workers[workerNo] ?? 0), 0);
    return (seat ? seat.requests + seat.sockets : 0) + others;
  }

  /** Whether a worker has nothing in flight but WebSockets of this server. */
  hasOnlySockets(workerNo: number): boolean {
    const seat = this.#seats.get(workerNo);
    return seat !== undefined && seat.sockets > 0 && this.heldBy(workerNo) === seat.sockets;
  }

  /** What each worker of an endpoint has in flight, over all servers. */
  holdings(endpointNo: number): Map<number, number> {
    const seats = this.#lines.get(endpointNo)?.seats ?? [];
    const nos = new Set(seats.map(({ worker }) => worker.row.no));
    for (const { workers } of this.#elsewhere) for (const no of Object.keys(workers)) nos.add(Number(no));
    return new Map([...nos].map((no) => [no, this.heldBy(no)]));
  }

  /** What this server tells the others once a second. */
  report(): GateReport {
    const endpoints: Record<string, GateLoad> = {};
    for (const no of this.#lines.keys()) endpoints[no] = this.#ownLoad(no);
    const workers: Record<string, number> = {};
    for (const [no, seat] of this.#seats)
      if (seat.requests + seat.sockets > 0) workers[no] = seat.requests + seat.sockets;
    const open = [...this.#lines.values()].filter(({ seats }) => seats.some(mayServe));
    return { endpoints, workers, open: open.map(({ endpointNo }) => endpointNo) };
  }

  /**
   * Takes in what the other servers have reported: what waits and runs there, and which of them may be passed requests.
   */
  hear(reports: readonly GateReport[], others: readonly OtherServer[] = []): void {
    this.#others.hear(others, this.#parts.clock.now());
    const before = this.#elsewhere;
    this.#elsewhere = reports;
    for (const line of this.#lines.values()) this.#serve(line);
    const nos = new Set([...before, ...reports].flatMap(({ endpoints }) => Object.keys(endpoints)));
    const sum = (all: readonly GateReport[], no: string) => {
      const { waiting, peak } = addLoads(all.map(({ endpoints }) => endpoints[no] ?? noLoad));
      return `${waiting} ${peak}`;
    };
    for (const no of nos) if (sum(before, no) !== sum(reports, no)) this.#parts.onDemand(Number(no), false);
  }

  /** Forgets a deleted endpoint and turns its waiting requests away. */
  close(endpointNo: number): void {
    const line = this.#lines.get(endpointNo);
    if (!line) return;
    for (const standing of [...line.standing]) standing.give(undefined);
    if (line.inFlight === 0 && line.seats.length === 0) this.#lines.delete(endpointNo);
  }

  #begin(line: Line, seat: Seat, isSocket: boolean): void {
    if (isSocket) seat.sockets++;
    else seat.requests++;
    if (seat.requests > seat.most) {
      seat.most = seat.requests;
      this.#parts.onSlots(seat.worker.row, seat.most);
    }
    seat.turn = ++this.#turns;
    line.inFlight++;
    line.peak = Math.max(line.peak, line.inFlight);
    this.#ringSoon(seat.worker.row.endpointNo, line);
  }

  #serve(line: Line): void {
    for (const standing of [...line.standing]) {
      const no = line.endpointNo;
      const found = this.take(no, standing.isSocket, standing.tried) ?? this.other(no);
      if (!found) return;
      standing.give(found);
    }
  }

  #ownLoad(endpointNo: number): GateLoad {
    const line = this.#lines.get(endpointNo);
    return line ? loadOf(line) : noLoad;
  }

  /**
   * Rings the scaler at most once per `gateRingMs`: thousands of requests a second need not cause as many decisions.
   */
  #ringSoon(endpointNo: number, line: Line): void {
    if (line.isRinging) return;
    line.isRinging = true;
    this.#parts.clock.after(limits.gateRingMs, () => {
      line.isRinging = false;
      line.peakBefore = line.peak;
      line.peak = line.inFlight;
      if (line.peakBefore !== line.peak) this.#ringSoon(endpointNo, line); // the peak falls in the next interval
      this.#parts.onDemand(endpointNo, false);
    });
  }

  #lineOf(endpointNo: number): Line {
    let line = this.#lines.get(endpointNo);
    if (!line) {
      line = newLine(endpointNo);
      this.#lines.set(endpointNo, line);
    }
    return line;
  }

  #seatOf(worker: GateWorker): Seat {
    let seat = this.#seats.get(worker.row.no);
    if (!seat) {
      seat = { worker, requests: 0, sockets: 0, most: 1, isOpen: false, turn: 0 };
      this.#seats.set(worker.row.no, seat);
      this.#lineOf(worker.row.endpointNo).seats.push(seat);
    }
    return seat;
  }
}
