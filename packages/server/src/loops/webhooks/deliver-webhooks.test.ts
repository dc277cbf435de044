import { Webhook } from "standardwebhooks";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { ApiKey } from "../../domain/access/key.js";
import type { Endpoint } from "../../domain/endpoints/endpoint.js";
import { limits } from "../../limits/index.js";
import { WebhookBytes } from "../../lines/webhook-bytes.js";
import { WebhookCalls } from "../../lines/webhook-calls.js";
import type { LiveWorker } from "../../memory/registry.js";
import { cancelJob } from "../../operations/jobs/change-job.js";
import { deliveriesOf, showDelivery } from "../../operations/webhooks/deliveries.js";
import { Scene } from "../../testing/scene-fixture.js";
import { deliverWebhooksLoop } from "./deliver-webhooks.js";
import { WebhookMemory } from "./webhook-memory.js";

let scene: Scene;
let endpoint: Endpoint;
let worker: LiveWorker;
beforeEach(async () => {
  scene = await Scene.open();
  endpoint = await scene.endpoint();
  worker = await scene.worker(endpoint);
});
afterEach(() => scene.close());

const hook = "https://hooks.example.com/done?x=1";
const posts = () => scene.sender.posts;
const shown = async (jobId?: string) => (await deliveriesOf(scene.parts, scene.admin, { jobId })).map(showDelivery);

async function completed(webhook = hook, output = '{"b":2}'): Promise<string> {
  const id = await scene.running(endpoint, worker, {
    input: { a: 1.5 },
    webhook,
    s3Config: { accessSecret: "hidden" },
  });
  await scene.done(worker, id, Buffer.from(`{"output":${output}}`));
  return id;
}
/** Another owner's job with a webhook, which has ended. */
async function hookedJob(caller: ApiKey, webhook: string, input = "{}"): Promise<void> {
  const { id: templateId } = await scene.template({ imageName: "handler:1" }, caller);
  const of = await scene.endpoint({ templateId }, caller);
  await cancelJob(scene.parts, of, await scene.submit(of, `{"input":${input},"webhook":"${webhook}"}`));
}
async function delivering(): Promise<void> {
  scene.run(scene.loops.deliver());
  await scene.advance(50);
}

describe("A webhook", () => {
  it("is sent when its job is final, with the status body, the input and the address", async () => {
    await delivering();
    const id = await completed();
    await scene.advance(50);
    const [post] = posts();
    expect(post?.url).toBe(hook);
    expect(post?.body).toMatchObject({
      id,
      status: "COMPLETED",
      output: { b: 2 },
      input: { a: 1.5 },
      webhook: hook,
      delayTime: 0,
      executionTime: 0,
    });
    expect(post?.text).not.toContain("hidden");
  });

  it("is not sent again at once if the due deliveries were read while its attempt was being recorded", async () => {
    const { deliveries } = scene.parts;
    let held: Promise<void> | undefined;
    const slow: typeof deliveries = {
      ...deliveries,
      due: async (batch) => {
        const page = await deliveries.due(batch);
        await held;
        return page;
      },
    };
    scene.run(deliverWebhooksLoop({ ...scene.parts, deliveries: slow }, scene.sender));
    await completed();
    await scene.advance(50);
    let release = () => {};
    held = new Promise((resolve) => {
      release = resolve;
    });
    scene.parts.bell.ring("deliveries");
    await scene.advance(50);
    posts()[0]?.answer({ status: 500 });
    await scene.settle();
    release();
    await scene.advance(50);
    expect(posts()).toHaveLength(1);
  });

  it.each(["FAILED", "CANCELLED", "TIMED_OUT"])("is also sent for a job that is %s", async (status) => {
    scene.run(scene.loops.timeOut());
    await delivering();
    const body = { input: {}, webhook: hook, policy: { executionTimeout: 5_000 } };
    const id = await scene.running(endpoint, worker, body);
    if (status === "FAILED") await scene.done(worker, id, { error: "no" });
    if (status === "CANCELLED") await cancelJob(scene.parts, endpoint, id);
    await scene.advance(6_000);
    expect(posts().map((post) => post.body.status)).toEqual([status]);
  });

  it("is not sent while its job waits, runs or is given back", async () => {
    await delivering();
    await scene.running(endpoint, worker, { input: {}, webhook: hook });
    await scene.advance(1_000);
    await scene.take(worker, { holdsNothing: true });
    await scene.advance(1_000);
    expect(posts()).toEqual([]);
  });

  it("is signed with its owner's secret", async () => {
    await delivering();
    await completed();
    await scene.advance(50);
    const { text, headers } = posts()[0]!;
    const secret = scene.parts.vault.open(scene.parts.registry.user(scene.admin.ownerNo)!.webhookSecret);
    expect(() => new Webhook(secret).verify(text, headers)).not.toThrow();
    expect(() => new Webhook(`whsec_${Buffer.alloc(24).toString("base64")}`).verify(text, headers)).toThrow();
    expect(headers["webhook-id"]).toMatch(/^msg_\w{24}$/);
  });

  it("that is answered 200 is delivered, and never sent again", async () => {
    scene.sender.status = 200;
    await delivering();
    await completed();
    await scene.advance(60_000);
    expect(posts()).toHaveLength(1);
    expect(await shown()).toMatchObject([{ state: "delivered", attempts: [{ status: 200 }] }]);
  });

  it.each([201, 204, 301, 404, 500])("that is answered %d is sent three times, 10 s apart", async (status) => {
    await delivering();
    await completed();
    await scene.advance(50);
    for (let attempt = 1; attempt <= 3; attempt++) {
      expect(posts()).toHaveLength(attempt);
      posts()[attempt - 1]?.answer({ status });
      await scene.advance(9_900);
      expect(posts()).toHaveLength(attempt);
      await scene.advance(1_200);
    }
    await scene.advance(60_000);
    expect(posts()).toHaveLength(3);
    expect(new Set(posts().map(({ headers }) => headers["webhook-id"])).size).toBe(1);
    expect(await shown()).toMatchObject([{ state: "failed", attempts: [{ status }, { status }, { status }] }]);
  });

  it("whose request fails is tried again, and each attempt is listed with its outcome", async () => {
    await delivering();
    const id = await completed();
    await scene.advance(50);
    await scene.advance(7_000);
    posts()[0]?.answer({ error: "the call failed: ECONNREFUSED" });
    await scene.advance(50);
    expect(await shown(id)).toMatchObject([
      { state: "pending", nextAttemptAt: expect.any(String), attempts: [{ error: "the call failed: ECONNREFUSED" }] },
    ]);
    await scene.advance(10_000);
    posts()[1]?.answer({ status: 200 });
    await scene.advance(50);
    const [delivery] = await shown(id);
    expect(delivery).toMatchObject({
      state: "delivered",
      attempts: [{ durationMs: expect.any(Number) }, { status: 200 }],
    });
    expect(delivery?.attempts[0]?.durationMs).toBeGreaterThanOrEqual(7_000);
    expect(delivery).not.toHaveProperty("nextAttemptAt");
  });
});

describe("Receivers", () => {
  it("that are slow delay no other webhook", async () => {
    await delivering();
    for (let n = 0; n < 6; n++) await completed("https://slow.example.com/");
    await completed("https://quick.example.com/");
    await scene.advance(50);
    const at = (host: string) => posts().filter(({ url }) => url.includes(host));
    expect([at("slow").length, at("quick").length]).toEqual([limits.webhookConcurrencyPerHost / 2, 1]);
    at("slow")[0]?.answer({ status: 200 });
    await scene.advance(50);
    expect(at("slow")).toHaveLength(limits.webhookConcurrencyPerHost / 2 + 1);
  });

  it("never have more calls at a time than there are slots in all", async () => {
    const [callsMax, owners] = [16, 20];
    const memory = new WebhookMemory({ calls: new WebhookCalls({ callsMax }) });
    for (let n = 0; n < owners; n++) {
      const { caller } = await scene.stranger();
      await hookedJob(caller, `https://host-${n}.example.com/`);
    }
    scene.run(deliverWebhooksLoop(scene.parts, scene.sender, memory));
    await scene.advance(2_000);
    expect(posts()).toHaveLength(callsMax);
    for (const post of posts().slice()) post.answer({ status: 200 });
    await scene.advance(2_000);
    expect(posts()).toHaveLength(owners);
  });

  it("that hang, 60 of one owner, delay neither that owner's healthy receiver nor another owner's", async () => {
    await delivering();
    for (let n = 0; n < 180; n++) await completed(`https://hanging-${n % 60}.example.com/`);
    await scene.advance(50);
    await completed("https://healthy.example.com/");
    await hookedJob((await scene.stranger()).caller, "https://other.example.com/");
    await scene.advance(50);
    const at = (host: string) => posts().filter(({ url }) => url.includes(host));
    expect([at("healthy").length, at("other").length]).toEqual([1, 1]);
  });

  it("that hang share the slots with receivers of other owners, however many there are", async () => {
    const memory = new WebhookMemory({ calls: new WebhookCalls({ callsMax: 16 }) });
    scene.run(deliverWebhooksLoop(scene.parts, scene.sender, memory));
    for (let n = 0; n < 30; n++) await completed(`https://hanging-${n}.example.com/`);
    await scene.advance(50);
    expect(posts()).toHaveLength(8);
    await hookedJob((await scene.stranger()).caller, "https://other.example.com/");
    await scene.advance(50);
    expect(posts().map(({ url }) => url)).toContain("https://other.example.com/");
  });

  it("that did not answer have fewer calls at a time, until they answer", async () => {
    await delivering();
    for (let n = 0; n < 4; n++) await completed("https://silent.example.com/");
    await scene.advance(limits.webhookTimeoutMs);
    expect(posts()).toHaveLength(4);
    for (const post of posts().slice()) post.answer({ error: "no whole answer within 10 s" });
    await scene.advance(limits.webhookRetryMs + 1_000);
    expect(posts()).toHaveLength(4 + limits.webhookConcurrencyPerSilentHost);
    posts()[4]?.answer({ status: 200 });
    await scene.advance(1_000);
    expect(posts()).toHaveLength(8);
  });
});

describe("Large webhooks", () => {
  const large = JSON.stringify({ text: "x".repeat(30_000) });
  const memory = () => new WebhookMemory({ bodies: new WebhookBytes({ bytesMax: 100_000, smallBytesMax: 10_000 }) });

  it("that are due at once are read a few at a time, and all are delivered", async () => {
    for (let n = 0; n < 12; n++) await completed(`https://host-${n}.example.com/`, large);
    const { reader } = scene.parts;
    let reads = 0;
    const findTexts: typeof reader.findTexts = (query) => {
      reads++;
      return reader.findTexts(query);
    };
    scene.run(deliverWebhooksLoop({ ...scene.parts, reader: { ...reader, findTexts } }, scene.sender, memory()));
    for (let ended = 0; ended < 12; ended++) {
      await scene.advance(50);
      expect(reads).toBe(Math.min(ended + 2, 12)); // 60 KB of 100: the rest is for other owners
      posts()[ended]?.answer({ status: 200 });
    }
    await scene.advance(50);
    expect((await shown()).map(({ state }) => state)).toEqual(Array(12).fill("delivered"));
  });

  it("do not delay small webhooks, nor another owner's", async () => {
    for (let n = 0; n < 12; n++) await completed(`https://large-${n}.example.com/`, large);
    await completed("https://small.example.com/");
    const { caller } = await scene.stranger();
    await hookedJob(caller, "https://theirs.example.com/");
    await hookedJob(caller, "https://theirs-large.example.com/", large);
    scene.run(deliverWebhooksLoop(scene.parts, scene.sender, memory()));
    await scene.advance(50);
    const hosts = posts().map(({ url }) => new URL(url).host.split(".")[0]);
    expect(hosts.filter((host) => host?.startsWith("large-"))).toHaveLength(2);
    expect(hosts).toEqual(expect.arrayContaining(["small", "theirs", "theirs-large"]));
  });
});

describe("A restart of the server", () => {
  it("during an attempt sends again with the same id, and the interrupted attempt does not count", async () => {
    await delivering();
    await completed();
    await scene.advance(50);
    const before = posts()[0]!.headers["webhook-id"];
    scene = await scene.restart();
    await delivering();
    for (let attempt = 0; attempt < 3; attempt++) {
      posts()[attempt]?.answer({ status: 500 });
      await scene.advance(11_100);
    }
    expect(posts()).toHaveLength(3);
    expect(new Set(posts().map(({ headers }) => headers["webhook-id"]))).toEqual(new Set([before]));
  });

  it("before the first attempt loses no webhook", async () => {
    await completed();
    scene = await scene.restart();
    await delivering();
    expect(posts()).toHaveLength(1);
  });
});
