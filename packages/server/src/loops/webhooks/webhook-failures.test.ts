import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Endpoint } from "../../domain/endpoints/endpoint.js";
import { limits } from "../../limits/index.js";
import type { LiveWorker } from "../../memory/registry.js";
import { deliveriesOf, showDelivery } from "../../operations/webhooks/deliveries.js";
import { Scene } from "../../testing/scene-fixture.js";
import { runLoop } from "../loop.js";
import { deliverWebhooksLoop } from "./deliver-webhooks.js";
import { WebhookMemory } from "./webhook-memory.js";

let scene: Scene;
let endpoint: Endpoint;
let worker: LiveWorker;
beforeEach(async () => {
  scene = await Scene.open();
  scene.sender.status = 200;
  endpoint = await scene.endpoint();
  worker = await scene.worker(endpoint);
});
afterEach(() => scene.close());

const posts = () => scene.sender.posts;
const shown = async () => (await deliveriesOf(scene.parts, scene.admin, {})).map(showDelivery);

async function completed(webhook = "https://hooks.example.com/"): Promise<void> {
  await scene.done(worker, await scene.running(endpoint, worker, { input: {}, webhook }));
}

/**
 * The store of deliveries, on a disk that is full while `isFull` returns true; `tries` are the times of the calls to
 * `record`.
 */
function fullDisk(isFull: () => boolean, tries: number[]) {
  const { deliveries } = scene.parts;
  const record: typeof deliveries.record = async (made) => {
    tries.push(scene.clock.now());
    if (isFull()) throw new Error("disk full");
    return deliveries.record(made);
  };
  return { ...deliveries, record };
}

describe("An attempt whose record cannot be written", () => {
  it("is not made again: only its record is retried, with growing pauses", async () => {
    const tries: number[] = [];
    let isFull = true;
    const deliveries = fullDisk(() => isFull, tries);
    scene.run(deliverWebhooksLoop({ ...scene.parts, deliveries }, scene.sender));
    await completed();
    await scene.advance(40_000);
    expect(posts()).toHaveLength(1);
    const pauses = tries.slice(1).map((at, n) => at - tries[n]!);
    expect(tries.length).toBeGreaterThanOrEqual(4);
    expect(tries.length).toBeLessThanOrEqual(8);
    expect(pauses).toEqual(pauses.toSorted((a, b) => a - b));
    expect(scene.warnings()).toMatchObject([{ message: expect.stringMatching(/webhook/) }]);
    isFull = false;
    await scene.advance(limits.webhookPauseMsMax);
    expect(await shown()).toMatchObject([{ state: "delivered", attempts: [{ status: 200 }] }]);
    await scene.advance(60_000);
    expect(posts()).toHaveLength(1);
  });

  it("counts from the time it was made: the next attempt follows as soon as it is recorded", async () => {
    let isFull = true;
    const deliveries = fullDisk(() => isFull, []);
    scene.sender.status = 500;
    scene.run(deliverWebhooksLoop({ ...scene.parts, deliveries }, scene.sender));
    await completed();
    await scene.advance(3 * limits.webhookRetryMs);
    isFull = false;
    await scene.advance(limits.webhookPauseMsMax);
    expect(posts().length).toBeGreaterThan(1);
    await scene.advance(2 * limits.webhookRetryMs + 2_000);
    expect(posts()).toHaveLength(limits.webhookAttemptsMax);
    expect(await shown()).toMatchObject([{ state: "failed", attempts: [{}, {}, {}] }]);
  });

  it("is remembered by a server that loses its lease and gets it again", async () => {
    let isFull = true;
    const needs = { ...scene.parts, deliveries: fullDisk(() => isFull, []) };
    const memory = new WebhookMemory();
    const term = new AbortController();
    const first = runLoop(deliverWebhooksLoop(needs, scene.sender, memory), scene.parts, term.signal);
    await completed();
    await scene.advance(1_000);
    expect(posts()).toHaveLength(1);
    term.abort();
    await first;
    scene.run(deliverWebhooksLoop(needs, scene.sender, memory));
    await scene.advance(1_000);
    isFull = false;
    await scene.advance(limits.webhookPauseMsMax);
    expect(posts()).toHaveLength(1);
    expect(await shown()).toMatchObject([{ state: "delivered", attempts: [{ status: 200 }] }]);
  });

  it("prevents further attempts once too many are remembered", async () => {
    const memory = new WebhookMemory({ unrecordedMax: 2 });
    const deliveries = fullDisk(() => true, []);
    scene.run(deliverWebhooksLoop({ ...scene.parts, deliveries }, scene.sender, memory));
    for (let n = 0; n < 5; n++) {
      await completed();
      await scene.advance(50);
    }
    await scene.advance(30_000);
    expect(posts()).toHaveLength(2);
  });
});

describe("A webhook", () => {
  it("whose secret cannot be decrypted has failed attempts with that reason", async () => {
    let opened = 0;
    const open = () => {
      opened++;
      throw new Error("Unsupported state or unable to authenticate data");
    };
    scene.run(deliverWebhooksLoop({ ...scene.parts, vault: { ...scene.parts.vault, open } }, scene.sender));
    await completed();
    await scene.advance(50);
    const error = expect.stringMatching(/signing secret/);
    expect(await shown()).toMatchObject([{ state: "pending", attempts: [{ error }] }]);
    await scene.advance(60_000);
    expect(opened).toBe(limits.webhookAttemptsMax);
    expect(posts()).toEqual([]);
    expect(await shown()).toMatchObject([{ state: "failed", attempts: [{ error }, { error }, { error }] }]);
  });

  it("whose job cannot be read is tried again with growing pauses, and loses no attempt", async () => {
    const { reader } = scene.parts;
    const reads: number[] = [];
    let isBroken = true;
    const findTexts: typeof reader.findTexts = async (query) => {
      reads.push(scene.clock.now());
      if (isBroken) throw new Error("the disk does not answer");
      return reader.findTexts(query);
    };
    scene.run(deliverWebhooksLoop({ ...scene.parts, reader: { ...reader, findTexts } }, scene.sender));
    await completed();
    await scene.advance(40_000);
    expect(reads.length).toBeLessThanOrEqual(8);
    expect(await shown()).toMatchObject([{ state: "pending", attempts: [] }]);
    isBroken = false;
    await scene.advance(limits.webhookPauseMsMax);
    expect(await shown()).toMatchObject([{ state: "delivered", attempts: [{ status: 200 }] }]);
  });
});
