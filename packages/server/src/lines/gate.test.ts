import { beforeEach, describe, expect, it } from "vitest";
import { PlainSignal, type Signal } from "../clock.js";
import type { Worker } from "../domain/workers/worker.js";
import { limits } from "../limits/index.js";
import { MovableClock } from "../testing/movable-clock-fixture.js";
import { Gate } from "./gate.js";
import type { Found, GateWorker, Seat } from "./gate-line.js";

const endpointNo = 7;
let clock: MovableClock;
let gate: Gate;
let rings: string[];
let slots: number[];
beforeEach(() => {
  clock = new MovableClock();
  rings = [];
  slots = [];
  gate = new Gate({
    clock,
    onDemand: (no, isUrgent) => void rings.push(`${no}${isUrgent ? "!" : ""}`),
    onSlots: (_row, count) => void slots.push(count),
  });
});

const worker = (no: number, more: Partial<Worker> = {}): GateWorker => ({
  row: { no, endpointNo, version: 1, wanted: "running", ...more } as Worker,
  busyAt: 0,
});
const take = (tried?: Set<number>) => gate.take(endpointNo, false, tried);
const noOf = (found: Found | undefined) => (found && "worker" in found ? found.worker.row.no : undefined);
const settle = () => new Promise<void>((done) => setImmediate(done));
const stand = (ms = 1_000, signal: Signal = new PlainSignal()) =>
  gate.stand(endpointNo, { ms, isSocket: false, signals: [signal] });

describe("A request", () => {
  it("goes to the worker with the fewest requests in flight", () => {
    for (const no of [1, 2, 3]) gate.open(worker(no));
    const first = [take(), take(), take()].map(noOf);
    expect(new Set(first)).toEqual(new Set([1, 2, 3]));
    const second = take() as Seat;
    gate.release(second, false, "completed");
    expect(noOf(take())).toBe(noOf(second));
  });

  it("among equals goes to the worker that was busy last, so that the others can stop", () => {
    for (const no of [1, 2]) gate.open(worker(no));
    const used = new Set<number | undefined>();
    for (let n = 0; n < 10; n++) {
      const seat = take() as Seat;
      used.add(noOf(seat));
      gate.release(seat, false, "completed");
    }
    expect(used.size).toBe(1);
  });

  it("goes to no worker that is shut, closed, ended or not yet open", () => {
    const closed = worker(1, { wanted: "closed" });
    gate.open(closed);
    gate.open(worker(2, { endedAt: 5 }));
    gate.open(worker(3));
    gate.shut(3);
    expect(take()).toBeUndefined();
    gate.open(worker(4));
    expect(noOf(take())).toBe(4);
  });

  it("goes to a worker that has failed it only if there is no other worker", () => {
    gate.open(worker(1));
    gate.open(worker(2));
    for (let n = 0; n < 5; n++) expect(noOf(take(new Set([1])))).toBe(2);
    gate.shut(2);
    expect(noOf(take(new Set([1])))).toBe(1);
  });

  it("takes into account the load of workers that other servers report", () => {
    gate.open(worker(1));
    gate.open(worker(2));
    gate.hear([{ endpoints: {}, workers: { 1: 5 } }]);
    expect([take(), take(), take()].map(noOf)).toEqual([2, 2, 2]);
    expect(gate.heldBy(1)).toBe(5);
  });
});

describe("A request that finds no worker", () => {
  it("waits until a worker is healthy, first in, first out", async () => {
    const order: number[] = [];
    const standing = [0, 1, 2].map((n) => stand().then((seat) => seat && order.push(n)));
    expect(gate.loadOf(endpointNo)).toMatchObject({ waiting: 3, inFlight: 0, oldestAt: clock.now() });
    expect(rings).toEqual(["7!", "7", "7"]);
    gate.open(worker(1));
    await Promise.all(standing);
    expect(order).toEqual([0, 1, 2]);
    expect(gate.loadOf(endpointNo)).toMatchObject({ waiting: 0, inFlight: 3 });
  });

  it("is passed on to another server that announces a worker, in turn, until that server fails", async () => {
    const server = (serverNo: number, nos = [endpointNo]) => ({
      serverNo,
      host: "10.0.0.1",
      port: 1,
      open: new Set(nos),
    });
    const standing = [stand(), stand()];
    gate.hear([], [server(1, [8])]);
    expect(gate.loadOf(endpointNo).waiting).toBe(2);
    gate.hear([], [server(1, [8]), server(2), server(3)]);
    const hosts = (await Promise.all(standing)).map((found) => found && "serverNo" in found && found.serverNo);
    expect(hosts.sort()).toEqual([2, 3]);
    gate.avoid(server(2), 1_000);
    gate.avoid(server(3), 1_000, endpointNo);
    expect(gate.other(endpointNo)).toBeUndefined();
    gate.hear([], [server(2), server(3, [8, endpointNo])]);
    expect([gate.other(endpointNo), gate.other(8)?.serverNo]).toEqual([undefined, 3]);
    await clock.advance(1_000, settle);
    expect(gate.other(endpointNo)).toBeDefined();
  });

  it("is given up when its time is over", async () => {
    const standing = stand(2_000);
    await clock.advance(1_999, settle);
    expect(gate.loadOf(endpointNo).waiting).toBe(1);
    await clock.advance(1, settle);
    expect(await standing).toBeUndefined();
    expect(gate.loadOf(endpointNo).waiting).toBe(0);
  });

  it("leaves the line when its client disconnects", async () => {
    const gone = new AbortController();
    const standing = stand(1_000, gone.signal);
    gone.abort();
    expect(await standing).toBeUndefined();
    expect(await stand(1_000, AbortSignal.abort())).toBeUndefined();
    gate.open(worker(1));
    expect(gate.heldBy(1)).toBe(0);
  });

  it("leaves the line when its endpoint is closed", async () => {
    const standing = stand();
    gate.close(endpointNo);
    expect(await standing).toBeUndefined();
  });

  it("is refused if too many already wait", () => {
    for (let n = 0; n < limits.gateWaitingMax; n++) {
      expect(gate.isFull(endpointNo)).toBe(false);
      void stand();
    }
    expect(gate.isFull(endpointNo)).toBe(true);
    gate.close(endpointNo);
  });
});

describe("The count of requests", () => {
  it("is the number in flight per worker, even for a shut worker; an ended worker is forgotten", () => {
    gate.open(worker(1));
    const seat = take() as Seat;
    const socket = gate.take(endpointNo, true) as Seat;
    gate.shut(1);
    expect([...gate.holdings(endpointNo)]).toEqual([[1, 2]]);
    expect(gate.hasOnlySockets(1)).toBe(false);
    gate.release(seat, false, "failed");
    expect(gate.hasOnlySockets(1)).toBe(true);
    gate.forget(1);
    gate.release(socket, true, "completed");
    expect(gate.loadOf(endpointNo)).toEqual({ waiting: 0, inFlight: 0, peak: 2, completed: 1, failed: 1, retried: 0 });
    expect([...gate.holdings(endpointNo)]).toEqual([]);
  });

  it("reports the most that a worker had at once, each time it grows", () => {
    gate.open(worker(1));
    const seats = [take(), take(), take()] as Seat[];
    for (const seat of seats) gate.release(seat, false, "completed");
    take();
    expect(slots).toEqual([2, 3]);
  });

  it("is reported to the other servers, whose demand rings here", () => {
    gate.open(worker(1));
    take();
    const report = gate.report();
    expect(report).toEqual({
      endpoints: { 7: expect.objectContaining({ inFlight: 1 }) },
      workers: { 1: 1 },
      open: [7],
    });
    gate.shut(1);
    expect(gate.report().open).toEqual([]);
    rings = [];
    const there = {
      endpoints: { 7: { waiting: 2, oldestAt: 5, inFlight: 1, peak: 1, completed: 1, failed: 0, retried: 0 } },
      workers: {},
    };
    gate.hear([there]);
    expect(rings).toEqual(["7"]);
    expect(gate.loadOf(endpointNo)).toMatchObject({ waiting: 2, inFlight: 2, oldestAt: 5 });
    gate.hear([there]);
    expect(rings).toEqual(["7"]);
    gate.hear([]);
    expect(rings).toEqual(["7", "7"]);
  });

  it("rings at most once per interval, and once more when its peak has fallen", async () => {
    gate.open(worker(1));
    const seats = [take(), take(), take()] as Seat[];
    expect(rings).toEqual([]);
    await clock.advance(limits.gateRingMs, settle);
    expect([rings.length, gate.loadOf(endpointNo).peak]).toEqual([1, 3]);
    for (const seat of seats) gate.release(seat, false, "completed");
    expect(rings).toHaveLength(1);
    await clock.advance(limits.gateRingMs, settle);
    expect([rings.length, gate.loadOf(endpointNo).peak]).toEqual([2, 3]);
    await clock.advance(limits.gateRingMs, settle);
    expect([rings.length, gate.loadOf(endpointNo).peak]).toEqual([3, 0]);
    await clock.advance(10 * limits.gateRingMs, settle);
    expect(rings).toHaveLength(3);
  });

  it("records when a worker was last busy, for its idle time", async () => {
    const idle = worker(1);
    gate.open(idle);
    const seat = take() as Seat;
    await clock.advance(500, settle);
    gate.release(seat, false, "completed");
    expect(idle.busyAt).toBe(clock.now());
  });
});
