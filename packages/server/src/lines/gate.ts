import type { Clock, Signal } from "../clock.js";
import { addLoads, type GateLoad, type GateReport, noLoad } from "../domain/scaling/gate-report.js";
import type { Worker } from "../domain/workers/worker.js";
import { limits } from "../limits/index.js";
import { type OtherServer, OtherServers } from "./other-servers.js";

/** A worker as the gate sees it: its row changes under it. */
export interface GateWorker {
  readonly row: Worker;
  /** When it last had something to do. */
  busyAt: number;
}

/** A worker's place at the gate, with what it holds of this server. */
export interface Seat {
  readonly worker: GateWorker;
  requests: number;
  /** WebSockets, which may stay for days. */
  sockets: number;
  /** The most requests it has had at once. */
  most: number;
  /** Whether new requests may go to it. */
  isOpen: boolean;
  /** Its number in the order of being busy: the highest was busy last. */
  turn: number;
}

/** One request that stands and waits. */
interface Standing {
  readonly since: number;
  readonly tried: ReadonlySet<number>;
  readonly isSocket: boolean;
  readonly give: (found: Found | undefined) => void;
}

/** Where a request goes: a worker that is reached from here, or another server that has one. */
export type Found = Seat | OtherServer;

/** All of one endpoint. */
interface Line {
  readonly endpointNo: number;
  readonly seats: Seat[];
  readonly standing: Set<Standing>;
  inFlight: number;
  /** The most in flight since the scaler was rung last, and before that. */
  peak: number;
  peakBefore: number;
  completed: number;
  failed: number;
  retried: number;
  /** Whether its scaler will be rung soon. */
  isRinging: boolean;
}

export interface GateParts {
  readonly clock: Pick<Clock, "now" | "sleep">;
  /** Demand has changed; `isUrgent`: a request waits, and none did before. */
  readonly onDemand: (endpointNo: number, isUrgent: boolean) => void;
  /** A worker has had more in flight at once than any of this version before. */
  readonly onSlots: (row: Worker, slots: number) => void;
  /** A worker was opened: requests at the other servers may go to it. */
  readonly onOpen?: () => void;
}

const none: ReadonlySet<number> = new Set();

/**
 * Load-balanced requests: each goes at once to the least-loaded healthy worker; where there is none they stand, first in,
 * first out, bounded in number and time. Counts what is in flight.
 */
export class Gate {
  readonly #parts: GateParts;
  readonly #lines = new Map<number, Line>();
  readonly #seats = new Map<number, Seat>(); // by worker
  readonly #suspects = new Set<number>();
  #elsewhere: readonly GateReport[] = [];
  readonly #others = new OtherServers();
  #turns = 0;
  /** Called when a worker is to be asked for its health at once. */
  onSuspect: () => void = () => {};

  constructor(parts: GateParts) {
    this.#parts = parts;
  }

  /** A worker is healthy: who stands goes to it. */
  open(worker: GateWorker): void {
    const { endpointNo } = worker.row;
    const seat = this.#seatOf(worker);
    const isNew = !seat.isOpen;
    seat.isOpen = true;
    this.#serve(this.#lineOf(endpointNo));
    if (isNew) this.#parts.onOpen?.();
  }

  /** No new requests go to a worker; those in flight go on. */
  shut(workerNo: number): void {
    const seat = this.#seats.get(workerNo);
    if (seat) seat.isOpen = false;
  }

  /** A worker has ended. */
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

  /** A request failed at a worker: it is to be asked for its health now. */
  suspect(workerNo: number): void {
    if (!this.#seats.has(workerNo)) return; // its last requests may end after it has
    this.#suspects.add(workerNo);
    this.onSuspect();
  }

  /** Whether a worker was suspected since this was last asked. */
  wasSuspected = (workerNo: number): boolean => this.#suspects.delete(workerNo);

  /** The least-loaded healthy worker, and of equals the one that was busy last, so that the others may go; one that was not tried before others. */
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

  /** Another server that has a healthy worker. */
  other = (endpointNo: number): OtherServer | undefined => this.#others.find(endpointNo, this.#parts.clock.now());

  /** Passes nothing on to a server for `ms`: what one endpoint's requests met there, or what all would meet. */
  avoid({ hostNo }: OtherServer, ms: number, endpointNo?: number): void {
    this.#others.avoid(hostNo, this.#parts.clock.now() + ms, endpointNo);
  }

  /** What was taken is over. */
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

  /** Whether one more may stand. */
  isFull = (endpointNo: number): boolean => (this.#lines.get(endpointNo)?.standing.size ?? 0) >= limits.gateWaitingMax;

  /** Stands until a worker is healthy, here or at another server; undefined when `ms` have passed, or at `signals`. */
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

  /** What waits and runs, here and at the other servers: what the scaler goes by. */
  loadOf(endpointNo: number): GateLoad {
    const others = this.#elsewhere.map(({ endpoints }) => endpoints[endpointNo] ?? noLoad);
    return addLoads([this.#ownLoad(endpointNo), ...others]);
  }

  /** How many requests and WebSockets a worker has in flight, of all servers. */
  heldBy(workerNo: number): number {
    const seat = this.#seats.get(workerNo);
    const others = this.#elsewhere.reduce((sum, { workers }) => sum + (workers[workerNo] ?? 0), 0);
    return (seat ? seat.requests + seat.sockets : 0) + others;
  }

  /** Whether all that this server has at a worker are WebSockets. */
  hasOnlySockets(workerNo: number): boolean {
    const seat = this.#seats.get(workerNo);
    return seat !== undefined && seat.sockets > 0 && this.heldBy(workerNo) === seat.sockets;
  }

  /** What each worker of an endpoint has in flight, of all servers. */
  holdings(endpointNo: number): Map<number, number> {
    const seats = this.#lines.get(endpointNo)?.seats ?? [];
    const nos = new Set(seats.map(({ worker }) => worker.row.no));
    for (const { workers } of this.#elsewhere) for (const no of Object.keys(workers)) nos.add(Number(no));
    return new Map([...nos].map((no) => [no, this.heldBy(no)]));
  }

  /** What the other servers are told once a second. */
  report(): GateReport {
    const endpoints: Record<string, GateLoad> = {};
    for (const no of this.#lines.keys()) endpoints[no] = this.#ownLoad(no);
    const workers: Record<string, number> = {};
    for (const [no, seat] of this.#seats)
      if (seat.requests + seat.sockets > 0) workers[no] = seat.requests + seat.sockets;
    const open = [...this.#lines.values()].filter(({ seats }) => seats.some(mayServe));
    return { endpoints, workers, open: open.map(({ endpointNo }) => endpointNo) };
  }

  /** Takes over what the other servers have told: what waits and runs there, and which of them requests may be passed on to. */
  hear(reports: readonly GateReport[], others: readonly OtherServer[] = []): void {
    this.#others.hear(others, this.#parts.clock.now());
    for (const line of this.#lines.values()) this.#serve(line);
    const before = this.#elsewhere;
    this.#elsewhere = reports;
    const nos = new Set([...before, ...reports].flatMap(({ endpoints }) => Object.keys(endpoints)));
    const sum = (all: readonly GateReport[], no: string) => {
      const { waiting, peak } = addLoads(all.map(({ endpoints }) => endpoints[no] ?? noLoad));
      return `${waiting} ${peak}`;
    };
    for (const no of nos) if (sum(before, no) !== sum(reports, no)) this.#parts.onDemand(Number(no), false);
  }

  /** Forgets an endpoint that is deleted: who stands goes. */
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
    if (!line) return noLoad;
    const { standing, inFlight, completed, failed, retried } = line;
    const peak = Math.max(line.peak, line.peakBefore);
    const [oldest] = standing;
    const waiting = standing.size;
    return { waiting, ...(oldest ? { oldestAt: oldest.since } : {}), inFlight, peak, completed, failed, retried };
  }

  /** Thousands of requests a second are no reason to decide as often. */
  #ringSoon(endpointNo: number, line: Line): void {
    if (line.isRinging) return;
    line.isRinging = true;
    setTimeout(() => {
      line.isRinging = false;
      line.peakBefore = line.peak;
      line.peak = line.inFlight;
      if (line.peakBefore !== line.peak) this.#ringSoon(endpointNo, line); // what is over now counts once more
      this.#parts.onDemand(endpointNo, false);
    }, limits.gateRingMs).unref();
  }

  #lineOf(endpointNo: number): Line {
    let line = this.#lines.get(endpointNo);
    if (!line) {
      line = {
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
      };
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

const mayServe = ({ isOpen, worker: { row } }: Seat): boolean =>
  isOpen && row.wanted === "running" && row.endedAt === undefined;

/** How one request stands. */
export interface Wait {
  readonly ms: number;
  readonly isSocket: boolean;
  readonly signals: readonly Signal[];
  /** Workers that have failed it: taken last. */
  readonly tried?: ReadonlySet<number> | undefined;
}

const triedLast = 1e6;
