import { afterEach, beforeEach, expect, it } from "vitest";
import { connectParts } from "../assembly/parts.js";
import { localBell } from "../bells/local.js";
import { limits } from "../limits/index.js";
import { Registry } from "../memory/registry.js";
import { authenticate } from "../operations/access/authenticate.js";
import { createSecret, deleteSecret } from "../operations/access/save-secret.js";
import { deleteUser } from "../operations/access/save-user.js";
import { deleteEndpoint } from "../operations/endpoints/save-endpoint.js";
import { awaitEnd } from "../operations/jobs/await-end.js";
import type { Parts } from "../operations/needs.js";
import { createRegistryAuth } from "../operations/templates/save-registry-auth.js";
import { deleteTemplate } from "../operations/templates/save-template.js";
import { createVolume, deleteVolume } from "../operations/volumes/save-volume.js";
import { Grants, Rates } from "../rates.js";
import type { SharedStore } from "../store/index.js";
import { day } from "../stores/contracts/scene.js";
import { metrics } from "../telemetry/metrics.js";
import { watchCollections } from "../testing/collections-fixture.js";
import { workerChanges } from "../testing/facts-fixture.js";
import { Scene } from "../testing/scene-fixture.js";
import { endCallsLoop, noteUsesLoop } from "./end-calls.js";
import { forgetEndedLoop } from "./forget-ended.js";
import { pollHealthLoop } from "./workers/poll-health.js";

const days = 30;
const perDay = 2;
const plainLimits = { ...limits };

let collections: ReturnType<typeof watchCollections>;
let scene: Scene;
/** The parts of another server on the same database, which owns no loop. */
let other: Parts;
let sides: Side[];

beforeEach(async () => {
  collections = watchCollections();
  Object.assign(limits, { rateCountsMax: 4, hashesRemembered: 8 }); // caches that are full within some days
  scene = await Scene.open();
  const { stores, clock } = scene;
  const workersSince = async (_: string, endedSince: number) => stores.workers.all(endedSince);
  const shared = {
    marks: async () => ({ mark: "0", revisions: {} }),
    forgetChanges: async () => {},
    changesSince: async () => new Map(),
    workersSince,
    exclusively: (change: () => Promise<unknown>) => change(),
  } as unknown as SharedStore;
  const registry = new Registry({ ...stores, shared }, { now: () => clock.now() });
  other = connectParts({
    ...scene.parts,
    stores: { ...stores, shared },
    provider: scene.provider,
    bell: localBell(),
    registry,
  });
  await registry.load(clock.now());
  sides = [new Side(scene.parts), new Side(other)];
  scene.sender.status = 200;
});
afterEach(async () => {
  await scene.close();
  Object.assign(limits, plainLimits);
  collections.end();
});

/** What a server has beside its parts: the counts of its callers, and its metrics. */
class Side {
  readonly parts: Parts;
  readonly #rates = new Rates();
  readonly #grants = new Grants(
    async () => 1,
    () => false,
  );
  readonly meter: ReturnType<typeof metrics>;

  constructor(parts: Parts) {
    this.parts = parts;
    this.meter = metrics({
      endpoints: () => parts.registry.endpoints(),
      tally: parts.tallies.tally,
      workers: async () => new Map([["running", 0]]),
      oldestWaiting: parts.tallies.oldestWaiting,
      gpus: () => ({ held: 0, free: 0 }),
      now: parts.clock.now,
    });
    parts.registry.onForget((_, id) => this.meter.forget(id));
  }

  /** A client calls an endpoint, and waits for its job. Resolves with a function that ends the call. */
  async call(key: string, endpointNo: number, job: string): Promise<() => Promise<void>> {
    const { parts } = this;
    const now = parts.clock.now();
    const caller = await authenticate(parts, `Bearer ${key}`);
    const endpoint = parts.registry.endpointByNo(endpointNo)!;
    const name = `${caller.ownerNo}/${endpoint.id}`;
    const admission = this.#rates.admit(name, "run", 0, now);
    expect(admission.ok && (await this.#grants.admit(name, 100, now))).toBe(true);
    const leave = parts.heldCalls.hold(caller.hash, { mayStay: () => true, end: () => {} });
    const gone = new AbortController();
    const ended = awaitEnd(parts, endpoint, job, gone.signal);
    parts.line(endpointNo);
    parts.registry.noteSlots(endpointNo, 1, 2);
    return async () => {
      gone.abort();
      await ended;
      leave();
      if (admission.ok) admission.release();
    };
  }

  async hear(): Promise<void> {
    for (const event of scene.events) this.meter.emit(event);
  }

  /** How many lines its page of metrics has. */
  async lines(): Promise<number> {
    return (await this.meter.page()).text.split("\n").length;
  }
}

/**
 * A user's whole life, and its endpoint's: resources of every kind, a job with a stream, a result and a webhook, which
 * clients of both servers wait for; then its worker ends, and everything is deleted.
 */
async function live(): Promise<void> {
  const { parts } = scene;
  const { key, caller } = await scene.stranger();
  const endpoint = await scene.endpoint();
  const template = parts.registry.template(endpoint.settings.templateId)!;
  const volume = await createVolume(parts, caller, { name: "v", size: 1, dataCenterId: "EU-RO-1" });
  await createRegistryAuth(parts, caller, { name: "r", username: "u", password: "p" });
  const secret = await createSecret(parts, caller, { name: "s", value: "a long secret" });
  const worker = await scene.worker(endpoint);
  const balanced = await scene.endpoint({ type: "LB", templateId: template.id });
  const server = await scene.worker(balanced);
  await parts.registry.changeWorker(server, { ...workerChanges.prepare, secretHash: `of ${server.row.id}` });
  const job = await scene.running(endpoint, worker, { input: {}, webhook: "https://example.com/" });
  await other.registry.refresh();
  const ends = await Promise.all([
    sides[0]!.call(key, endpoint.no, job),
    sides[1]!.call(scene.key, endpoint.no, job),
    sides[1]!.call(key, endpoint.no, job),
  ]);
  await scene.chunk(worker, job, { output: "part" });
  await scene.done(worker, job);
  for (const end of ends) await end();
  await scene.advance(60_000);
  for (const side of sides) expect(side.parts.gate.isOpen(server.row.no)).toBe(true);
  for (const each of [worker, server])
    await parts.registry.changeWorker(each, { ...workerChanges.end, endedAt: scene.clock.now() });
  for (const each of [endpoint, balanced])
    await deleteEndpoint(parts, scene.admin, scene.now(each), { setToZero: true });
  await deleteTemplate(parts, scene.admin, template);
  await deleteVolume(parts, caller, volume.id);
  await deleteSecret(parts, caller, secret.id);
  const { id } = parts.registry.users().find(({ no }) => no === caller.ownerNo)!;
  await deleteUser(parts, scene.admin, id, { deleteResources: true });
  await other.registry.refresh();
  for (const side of sides) await side.hear();
  scene.events.length = 0;
}

/** The size of everything that could grow: collections in memory, metrics, and rows. */
async function sizes(): Promise<Record<string, number>> {
  const { stores } = scene;
  const endpointNos = Array.from({ length: 2 * days * perDay }, (_, n) => n + 1);
  return {
    ...(await collections.sizes()),
    "metrics of the owner": await sides[0]!.lines(),
    "metrics of the other": await sides[1]!.lines(),
    endpoints: (await stores.endpoints.all()).length,
    templates: (await stores.templates.all()).length,
    volumes: (await stores.volumes.all()).length,
    workers: (await stores.workers.all(0)).length,
    deliveries: (await stores.deliveries.list({ endpointNos, limit: 10_000 })).length,
  };
}

it("After a month of users and endpoints that come and go, a server holds no more than after a few days, whether it owns the loops or not", {
  timeout: 300_000,
}, async () => {
  const { expire, timeOut, deliver } = scene.loops;
  scene.run(expire(), timeOut(), deliver());
  const polling = { ping: async () => "ready" as const, forget: () => {} };
  for (const { parts } of sides)
    scene.run(forgetEndedLoop(parts), endCallsLoop(parts), noteUsesLoop(parts), pollHealthLoop(parts, polling));
  const seen: Record<string, number>[] = [];
  for (let n = 0; n < days; n++) {
    for (let k = 0; k < perDay; k++) {
      await live();
      await scene.advance(day / perDay);
    }
    await other.registry.refresh();
    seen.push(await sizes());
  }
  const early = seen.slice(5, 15); // by then everything has happened once
  const last = seen.at(-1)!;
  const grown = Object.entries(last).filter(([name, size]) => size > Math.max(...early.map((each) => each[name] ?? 0)));
  expect(grown).toEqual([]);
  expect(last.deliveries).toBeGreaterThan(0);
  expect(Object.keys(last).length).toBeGreaterThan(50); // it sees the server's collections
});
