import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { makeHandler } from "../e2e/handlers.js";
import { submit, type Target } from "../e2e/wire.js";
import { call, makeEndpoint, until } from "../harness.js";
import { type Cluster, type Member, startCluster } from "./cluster.js";

let cluster: Cluster;
beforeAll(async () => {
  cluster = await startCluster(2);
  await cluster.settled();
});
afterAll(() => cluster?.end());

/** How a held request ended: with a status, or as a stream that was cut or closed. */
type End = number | "over";

/** Requests that are held for minutes, or as long as their caller stays. */
async function holdAll(theirs: Target, endpoint: string): Promise<Record<string, Promise<End>>> {
  const job = await submit(theirs, endpoint);
  const ask = (method: string, path: string, body?: object) =>
    call(theirs, method, path, body).then(({ status }) => status);
  const asked = {
    runsync: ask("POST", `/v2/${endpoint}/runsync?wait=300000`, { input: {} }),
    "status-sync": ask("GET", `/v2/${endpoint}/status-sync/${job}?wait=300000`),
    "stream by polls": ask("GET", `/v2/${endpoint}/stream/${job}?wait=90000`),
  };
  const open = async (path: string): Promise<Promise<End>[]> => {
    const headers = { authorization: `Bearer ${theirs.key}`, accept: "text/event-stream" };
    const reply = await fetch(theirs.url + path, { headers });
    expect([path, reply.status]).toEqual([path, 200]);
    return [
      reply
        .text()
        .then(() => "over" as const)
        .catch(() => "over" as const),
    ];
  };
  const [[stream], [log], [events]] = await Promise.all([
    open(`/v2/${endpoint}/stream/${job}`),
    open(`/v1/endpoints/${endpoint}/logs?follow=true`),
    open("/v1/events"),
  ]);
  return { ...asked, stream: stream!, "followed log": log!, events: events! };
}

describe("A key made by one server", () => {
  const changed = (one: Target, id: string, body: object) => call(one, "PATCH", `/v1/apikeys/${id}`, body);
  const ends: [string, (one: Target, id: string) => Promise<{ status: number }>][] = [
    ["revoked", (one, id) => call(one, "DELETE", `/v1/apikeys/${id}`)],
    ["rotated", (one, id) => call(one, "POST", `/v1/apikeys/${id}/rotate`, { overlapSeconds: 1 })],
    ["expired", (one, id) => changed(one, id, { expiresAt: new Date(Date.now() + 1_000).toISOString() })],
  ];

  it.for(ends)(
    "works at once at another server, and all requests held for it there end when it is %s",
    async ([, end], test) => {
      const [one, other] = cluster.members as [Member, Member];
      const endpoint = await makeEndpoint(one, makeHandler(test), { workersMax: 0 });
      const { body: made } = await call(one, "POST", "/v1/apikeys", { name: "k" });
      const theirs = { url: other.url, key: made.key as string };
      const health = async () => (await call(theirs, "GET", `/v2/${endpoint}/health`)).status;
      expect(await health()).toBe(200);
      const held = await holdAll(theirs, endpoint);
      await until(async () => (await call(one, "GET", `/v2/${endpoint}/health`)).body.jobs.inQueue === 2);
      expect((await end(one, made.id)).status).toBeLessThan(300);
      // long before they would end by themselves
      const ended = await Promise.all(Object.entries(held).map(async ([name, over]) => [name, await over]));
      expect(Object.fromEntries(ended)).toEqual({
        runsync: 401,
        "status-sync": 401,
        "stream by polls": 401,
        stream: "over",
        "followed log": "over",
        events: "over",
      });
      expect(await health()).toBe(401);
    },
  );
});

describe("The bootstrap key", () => {
  it("is rotated while the service runs, on all servers, and a new server with the old key does not restore it", async () => {
    const [one, other] = cluster.members;
    const { body: keys } = await call(one!, "GET", "/v1/apikeys");
    const { id } = keys.find((each: { isBootstrap?: boolean }) => each.isBootstrap);
    const { body: rotated } = await call(one!, "POST", `/v1/apikeys/${id}/rotate`, { overlapSeconds: 0 });
    expect(rotated.key).toMatch(/^mr_/);
    const statuses = async (key: string) =>
      Promise.all(
        [one!, other!].map(async (each) => (await call({ url: each.url, key }, "GET", "/v1/endpoints")).status),
      );
    await until(async () => (await statuses(rotated.key)).every((status) => status === 200));
    await until(async () => (await statuses(one!.key)).every((status) => status === 401));
    const late = await cluster.join(); // its MILLRACE_API_KEY is the old key
    expect((await call({ url: late.url, key: one!.key }, "GET", "/v1/endpoints")).status).toBe(401);
    expect((await call({ url: late.url, key: rotated.key }, "GET", "/v1/endpoints")).status).toBe(200);
    expect(readFileSync(join(one!.dataDir, "api-key"), "utf8").trim()).toBe(rotated.key);
  });
});
