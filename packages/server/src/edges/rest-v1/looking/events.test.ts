import { eventsOf } from "@millrace/api/client";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Endpoint } from "../../../domain/endpoints/endpoint.js";
import { limits } from "../../../limits/index.js";
import { endCallsLoop } from "../../../loops/end-calls.js";
import { type Http, openHttp } from "../../../testing/http-fixture.js";
import { Scene } from "../../../testing/scene-fixture.js";

let scene: Scene;
let http: Http;
let endpoint: Endpoint;
const open = new Set<AbortController>();
beforeEach(async () => {
  scene = await Scene.open();
  http = await openHttp(scene);
  endpoint = await scene.endpoint();
});
afterEach(async () => {
  for (const client of open) client.abort();
  open.clear();
  await http.close();
  await scene.close();
});

type Told = { readonly endpointId?: string; readonly what: readonly string[] };

/** Opens the stream, and collects what it tells. */
async function listen(key = scene.key) {
  const client = new AbortController();
  open.add(client);
  const reply = await fetch(`${http.url}/v1/events`, {
    headers: { authorization: `Bearer ${key}` },
    signal: client.signal,
  });
  const told: Told[] = [];
  const stream = { status: reply.status, told, isOver: false, leave: () => client.abort() };
  const read = async () => {
    for await (const events of eventsOf(reply))
      for (const { event, data } of events) if (event === "changed") told.push(...(JSON.parse(data) as Told[]));
  };
  read()
    .catch(() => {})
    .finally(() => {
      stream.isOver = true;
    });
  return stream;
}

/** The names of the events that a stream tells from now on. */
async function eventsRead(key: string): Promise<string[]> {
  const client = new AbortController();
  open.add(client);
  const reply = await fetch(`${http.url}/v1/events`, {
    headers: { authorization: `Bearer ${key}` },
    signal: client.signal,
  });
  const names: string[] = [];
  const read = async () => {
    for await (const events of eventsOf(reply)) names.push(...events.map(({ event }) => event));
  };
  read().catch(() => {}); // it has left
  return names;
}

/** Lets the rest between two events pass. */
const rest = () => scene.advance(limits.newsRestMs);
const ofEndpoint = (told: readonly Told[], id = endpoint.id) =>
  new Set(told.filter(({ endpointId }) => endpointId === id).flatMap(({ what }) => what));

describe("GET /v1/events", () => {
  it("names endpoints whose jobs, workers or settings have changed, once for all that happens in a while", async () => {
    const stream = await listen();
    const worker = await scene.worker(endpoint);
    for (let n = 0; n < 5; n++) await scene.done(worker, await scene.running(endpoint, worker));
    await rest();
    await expect.poll(() => ofEndpoint(stream.told)).toContain("jobs");
    expect(stream.told.filter(({ endpointId }) => endpointId === endpoint.id)).toHaveLength(1);

    await http.call("PATCH", `/v1/endpoints/${endpoint.id}`, { body: { workersMax: 2 } });
    await rest();
    await expect.poll(() => ofEndpoint(stream.told)).toContain("endpoint");
  });

  it("tells of an endpoint that is new, and of one that was deleted", async () => {
    const stream = await listen();
    const made = await scene.endpoint({ workersMax: 0 });
    await rest();
    await expect.poll(() => ofEndpoint(stream.told, made.id)).toContain("endpoint");
    stream.told.length = 0;
    expect((await http.call("DELETE", `/v1/endpoints/${made.id}`)).status).toBe(204);
    await rest();
    await expect.poll(() => ofEndpoint(stream.told, made.id)).toContain("endpoint");
  });

  it("tells of webhooks, without an endpoint, whoever sees them", async () => {
    await scene.addKey("mr_bound", scene.admin.ownerNo, { kind: "endpoints", access: { [endpoint.id]: "run" } });
    await scene.addKey("mr_reads", scene.admin.ownerNo, { kind: "readOnly" });
    const { key: strangers } = await scene.stranger();
    scene.sender.status = 200;
    scene.run(scene.loops.deliver());
    const worker = await scene.worker(endpoint);
    await rest();
    const [own, reads, ...others] = await Promise.all(
      [scene.key, "mr_reads", "mr_bound", strangers].map((key) => listen(key)),
    );
    const isToldTo = ({ told }: { readonly told: readonly Told[] }) =>
      told.some(({ endpointId, what }) => endpointId === undefined && what.includes("webhooks"));
    const all = [own, reads].filter((stream) => stream !== undefined);
    const allAreTold = async () => {
      await rest();
      await expect.poll(() => all.every(isToldTo)).toBe(true);
      for (const { told } of all) told.length = 0;
    };

    const webhook = "https://hooks.example.com/done";
    await scene.done(worker, await scene.running(endpoint, worker, { input: {}, webhook }));
    await allAreTold();
    const [receiver] = (await http.get("/v1/webhooks/receivers")).json;
    for (const to of ["pause", "resume"]) {
      await http.post(`/v1/webhooks/receivers/${receiver.id}/${to}`, undefined);
      await allAreTold();
    }
    const [delivery] = (await http.get("/v1/webhooks/deliveries")).json;
    await http.post(`/v1/webhooks/deliveries/${delivery.id}/redeliver`, undefined);
    await allAreTold();
    expect(others.filter(isToldTo)).toEqual([]);
  });

  it("tells nobody of what their key does not see", async () => {
    const other = await scene.endpoint();
    const { key: strangers } = await scene.stranger();
    await scene.addKey("mr_bound", scene.admin.ownerNo, { kind: "endpoints", access: { [other.id]: "run" } });
    await scene.addKey("mr_second_admin", await scene.user({ isAdmin: true }));
    const streams = await Promise.all([strangers, "mr_bound", "mr_second_admin"].map((key) => listen(key)));
    const own = await listen();
    const worker = await scene.worker(endpoint);
    await scene.done(worker, await scene.running(endpoint, worker));
    await http.call("PATCH", `/v1/endpoints/${endpoint.id}`, { body: { workersMin: 0, workersMax: 0 } });
    await http.call("DELETE", `/v1/endpoints/${endpoint.id}`);
    await scene.submit(other);
    await rest();
    await expect.poll(() => ofEndpoint(own.told, other.id)).toContain("jobs");
    const [ofStranger, bound, ofSecond] = streams.map(({ told }) => told);
    expect([ofStranger, ofSecond]).toEqual([[], []]);
    await expect.poll(() => bound?.map(({ endpointId }) => endpointId)).toEqual([other.id]);
  });

  it("says that much has changed instead of naming very many endpoints", async () => {
    const client = new AbortController();
    open.add(client);
    const headers = { authorization: `Bearer ${scene.key}` };
    const reply = await fetch(`${http.url}/v1/events`, { headers, signal: client.signal });
    for (let n = 0; n <= limits.newsItemsMax; n++) scene.parts.news.note(`endpoint ${n}`, "jobs", scene.admin.ownerNo);
    await rest();
    const said: string[] = [];
    for await (const events of eventsOf(reply)) {
      said.push(...events.map(({ event }) => event));
      break;
    }
    expect(said).toEqual(["missed"]);
  });

  it("tells a key of chosen endpoints nothing of the others, however many of them change", async () => {
    await scene.addKey("mr_chosen", scene.admin.ownerNo, { kind: "endpoints", access: { [endpoint.id]: "read" } });
    const [all, chosen] = [await eventsRead(scene.key), await eventsRead("mr_chosen")];
    const others = Array.from({ length: limits.newsItemsMax + 1 }, (_, n) => `other-${n}`);
    for (const id of others) scene.parts.news.note(id, "jobs", scene.admin.ownerNo);
    await rest();
    await expect.poll(() => all).toEqual(["missed"]);
    scene.parts.news.note(endpoint.id, "jobs");
    await rest();
    await expect.poll(() => chosen).toEqual(["changed"]);
  });

  it("ends when its key is revoked, and when the server stops", async () => {
    const key = await scene.addKey("mr_revoked", scene.admin.ownerNo);
    scene.run(endCallsLoop(scene.parts));
    const [revoked, other] = [await listen("mr_revoked"), await listen()];
    expect((await http.call("DELETE", `/v1/apikeys/${key.id}`)).status).toBe(204);
    await scene.advance(limits.keyLookMs);
    await expect.poll(() => revoked.isOver).toBe(true);
    expect(other.isOver).toBe(false);
    scene.draining.abort();
    await expect.poll(() => other.isOver).toBe(true);
  });

  it("refuses a user who has too many open, until one is closed", async () => {
    const streams = [];
    for (let n = 0; n < limits.newsFollowersPerOwner; n++) streams.push(await listen());
    expect((await listen()).status).toBe(503);
    expect((await listen((await scene.stranger()).key)).status).toBe(200);
    streams[0]?.leave();
    await expect.poll(async () => (await listen()).status).toBe(200);
  });

  it("is refused without a key", async () => {
    expect((await http.get("/v1/events", { key: null })).status).toBe(401);
  });
});
