import { afterEach, beforeEach, expect, it } from "vitest";
import { openGate } from "../assembly/gate.js";
import { takeLines } from "../assembly/take-lines.js";
import type { Bell } from "../bell.js";
import { endpointDefaults } from "../domain/endpoints/endpoint.js";
import { hostIsSilent } from "../domain/workers/worker.js";
import { limits } from "../limits/index.js";
import type { TakeLine } from "../lines/take-line.js";
import { Registry } from "../memory/registry.js";
import type { SharedStore } from "../store/index.js";
import { plainTemplate, workerChanges } from "../testing/facts-fixture.js";
import { Scene } from "../testing/scene-fixture.js";
import { forgetEndedLoop } from "./forget-ended.js";
import { scaleLoop } from "./scaling/scale.js";

let scene: Scene;
let now: number;
/** A server that owns no loop, and the server that makes and deletes everything. */
let ours: Registry;
let others: Registry;
beforeEach(async () => {
  scene = await Scene.open();
  now = scene.clock.now();
  const workersSince = async (_: string, endedSince: number) => scene.stores.workers.all(endedSince);
  const shared = {
    marks: async () => ({ mark: "0", revisions: {} }),
    forgetChanges: async () => {},
    changesSince: async () => new Map(),
    workersSince,
  };
  const stores = { ...scene.stores, shared: shared as unknown as SharedStore };
  [ours, others] = [new Registry(stores, { now: () => now }), new Registry(stores, { now: () => now })];
});
afterEach(() => scene.close());

/** A bell that counts its listeners. */
function countingBell(bell: Bell): { bell: Bell; listening: () => number } {
  let listening = 0;
  const on: Bell["on"] = (topic, listener) => {
    listening++;
    const off = bell.on(topic, listener);
    return () => {
      listening--;
      off();
    };
  };
  return { bell: { ...bell, on }, listening: () => listening };
}

const settings = { ...endpointDefaults, name: "short-lived", templateId: "template000001" };
const count = 30;

async function makeMany(): Promise<void> {
  for (let n = 0; n < count; n++) {
    const made = { id: `endpoint${n}`, ownerNo: 1, settings, template: plainTemplate, createdAt: now };
    const { no } = await others.createEndpoint(made);
    await others.createWorker({ id: `worker${n}`, endpointNo: no, version: 1, hostNo: 1, createdAt: now });
  }
  await ours.refresh();
}

async function endAll(): Promise<void> {
  for (const worker of others.liveWorkers()) await others.changeWorker(worker, { ...workerChanges.end, endedAt: now });
  for (const endpoint of others.endpoints()) await others.removeEndpoint(endpoint, now);
  now += 1_000;
  await ours.refresh();
}

/** Advances by a day, on a server that owns no loop. */
async function forget(): Promise<void> {
  const gone = new AbortController().signal;
  await forgetEndedLoop({ registry: ours }).tick(now, gone);
  expect(ours.endedWorkers().size + ours.endpoints().length).toBe(2 * count);
  now += limits.workerRowKeptMs + limits.forgetMs;
  await ours.refresh();
  await forgetEndedLoop({ registry: ours }).tick(now, gone);
}

it("A server that owns no loop drops the state of ended workers and endpoints: slots, and the lines of their jobs and requests", async () => {
  const { bell, listening } = countingBell(scene.parts.bell);
  const lines = new Map<number, TakeLine>();
  const line = takeLines(lines, { ...scene.parts, registry: ours, bell });
  const gate = openGate(scene.clock, bell, ours, true);
  await makeMany();
  for (const { no } of ours.endpoints()) {
    line(no);
    ours.noteSlots(no, 1, 4);
    gate.isFull(no);
    for (const worker of ours.workersOf(no)) gate.open(worker);
  }
  expect([lines.size, listening(), Object.keys(gate.report().endpoints).length]).toEqual([count, count, count]);
  await endAll();
  for (const { row } of ours.endedWorkers()) {
    gate.forget(row.no);
    gate.suspect(row.no);
  }
  await forget();
  expect([ours.size, lines.size, listening(), gate.report().endpoints]).toEqual([0, 0, 0, {}]);
});

it("Workers of which nothing ran are forgotten within minutes, others are kept for a day", async () => {
  await makeMany();
  const [started, lost] = others.liveWorkers();
  await others.changeWorker(started!, workerChanges.prepare);
  await others.changeWorker(started!, workerChanges.start);
  for (const worker of others.liveWorkers()) {
    const exit = { note: worker === lost ? hostIsSilent : "no container engine answers" };
    await others.changeWorker(worker, { ...workerChanges.end, endedAt: now, exit });
  }
  await ours.refresh();
  expect(ours.endedWorkers().size).toBe(count);
  now += limits.neverRanKeptMs + 1;
  await forgetEndedLoop({ registry: ours }).tick(now, new AbortController().signal);
  const next = new Registry(scene.stores, { now: () => now });
  await next.load(now);
  for (const registry of [ours, next])
    expect([...registry.endedWorkers()].map(({ row }) => row.id)).toEqual([started!.row.id, lost!.row.id]);
});

it("The scaler forgets endpoints that its server has forgotten, and no longer checks them", async () => {
  const { bell, listening } = countingBell(scene.parts.bell);
  const loop = scaleLoop({ ...scene.parts, registry: ours, bell });
  const gone = new AbortController().signal;
  await makeMany();
  await loop.tick(now, gone);
  expect(listening()).toBe(count);
  await endAll();
  await loop.tick(now, gone);
  await forget();
  expect(await loop.tick(now, gone)).toBeUndefined();
  expect(listening()).toBe(0);
});
