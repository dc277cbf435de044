import { afterEach, beforeEach, expect, it } from "vitest";
import { takeLines } from "../assembly/take-lines.js";
import type { TakeLine } from "../lines/take-line.js";
import { Registry } from "../memory/registry.js";
import { deleteEndpoint } from "../operations/endpoints/save-endpoint.js";
import { deleteTemplate } from "../operations/templates/save-template.js";
import type { SharedStore } from "../store/index.js";
import { day } from "../stores/contracts/scene.js";
import { workerChanges } from "../testing/facts-fixture.js";
import { Scene } from "../testing/scene-fixture.js";
import { forgetEndedLoop } from "./forget-ended.js";

const days = 30;
const perDay = 4;

let scene: Scene;
/** The registry of another server, which owns no loop. */
let other: Registry;
let otherLines: Map<number, TakeLine>;

beforeEach(async () => {
  scene = await Scene.open();
  const { stores, clock } = scene;
  const workersSince = async (_: string, endedSince: number) => stores.workers.all(endedSince);
  const shared = {
    marks: async () => ({ mark: "0", revisions: {} }),
    forgetChanges: async () => {},
    changesSince: async () => new Map(),
    workersSince,
  } as unknown as SharedStore;
  other = new Registry({ ...stores, shared }, { now: () => clock.now() });
  otherLines = new Map();
  scene.sender.status = 200;
});
afterEach(() => scene.close());

/** An endpoint's whole life: a job with a stream, a result and a webhook, then its worker ends and it is deleted. */
async function live(): Promise<void> {
  const { parts } = scene;
  const endpoint = await scene.endpoint();
  const worker = await scene.worker(endpoint);
  const job = await scene.running(endpoint, worker, { input: {}, webhook: "https://example.com/" });
  await scene.chunk(worker, job, { output: "part" });
  await scene.done(worker, job);
  parts.gate.open(worker);
  parts.registry.noteSlots(endpoint.no, 1, 2);
  await other.refresh();
  takeLines(otherLines, { ...parts, registry: other })(endpoint.no);
  await scene.advance(60_000);
  await parts.registry.changeWorker(worker, { ...workerChanges.end, endedAt: scene.clock.now() });
  parts.gate.forget(worker.row.no);
  await deleteEndpoint(parts, scene.admin, scene.now(endpoint), { setToZero: true });
  const template = parts.registry.template(endpoint.settings.templateId);
  if (template) await deleteTemplate(parts, scene.admin, template);
  await other.refresh();
}

/** The size of every collection that could grow. */
async function sizes(): Promise<Record<string, number>> {
  const { stores, parts } = scene;
  const endpointNos = Array.from({ length: days * perDay }, (_, n) => n + 1);
  return {
    memory: parts.registry.size,
    memoryOfTheOther: other.size,
    lines: scene.lines.size,
    linesOfTheOther: otherLines.size,
    gates: Object.keys(parts.gate.report().endpoints).length,
    endpoints: (await stores.endpoints.all()).length,
    templates: (await stores.templates.all()).length,
    workers: (await stores.workers.all(0)).length,
    deliveries: (await stores.deliveries.list({ endpointNos, limit: 10_000 })).length,
  };
}

it("After a month of endpoints that come and go, a server holds no more than after two days, whether it owns the loops or not", {
  timeout: 300_000,
}, async () => {
  const { parts } = scene;
  const { expire, timeOut, deliver } = scene.loops;
  scene.run(expire(), timeOut(), deliver());
  scene.run(forgetEndedLoop(parts), forgetEndedLoop({ registry: other }));
  const seen: Record<string, number>[] = [];
  for (let n = 0; n < days; n++) {
    for (let k = 0; k < perDay; k++) {
      await live();
      await scene.advance(day / perDay);
    }
    await other.refresh();
    seen.push(await sizes());
  }
  const early = seen.slice(2, 6);
  for (const [name, size] of Object.entries(seen.at(-1)!)) {
    expect([name, size]).toEqual([name, expect.toSatisfy((n: number) => n <= Math.max(...early.map((e) => e[name]!)))]);
  }
  expect(seen.at(-1)!.deliveries).toBeGreaterThan(0);
});
