import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Endpoint } from "../../domain/endpoints/endpoint.js";
import { limits } from "../../limits/index.js";
import { endCallsLoop, noteUsesLoop } from "../../loops/end-calls.js";
import { followLog } from "../../testing/followed-log-fixture.js";
import { type Http, openHttp } from "../../testing/http-fixture.js";
import { Scene } from "../../testing/scene-fixture.js";
import { made, refused } from "./answers-fixture.js";

let scene: Scene;
let http: Http;
let endpoint: Endpoint;
beforeEach(async () => {
  scene = await Scene.open();
  http = await openHttp(scene);
  endpoint = await scene.endpoint();
});
afterEach(async () => {
  await http.close();
  await scene.close();
});

const newUser = (name: string, role?: string) => made(http.post("/v1/users", { name, ...(role && { role }) }));
const newKey = (body: object, key?: string) =>
  made(http.post("/v1/apikeys", { name: "a key", ...body }, key === undefined ? {} : { key }));
const rename = (key: string, name = "renamed") =>
  http.call("PATCH", `/v1/endpoints/${endpoint.id}`, { key, body: { name } });
const adminId = () => scene.parts.registry.user(scene.admin.ownerNo)?.id as string;

describe("An API key", () => {
  it("is shown once, and is stored as a hash with its prefix", async () => {
    const { key, ...shown } = await newKey({ name: "laptop" });
    expect(key).toMatch(/^mr_[\w-]{43}$/);
    expect(shown).toMatchObject({ name: "laptop", prefix: key.slice(0, 6), scope: "all", userId: adminId() });
    expect(await made(http.get(`/v1/apikeys/${shown.id}`))).toEqual(shown);
    expect(JSON.stringify(await scene.stores.access.keys())).not.toContain(key);
    expect((await rename(key)).status).toBe(200);
  });

  it.each([
    ["read", "read"],
    ["all", "all"],
  ])("tells itself what it may do: %s", async (_, scope) => {
    const { key, ...shown } = await newKey({ scope });
    expect(await made(http.get("/v1/apikeys/self", { key }))).toEqual({ ...shown, lastUsedAt: expect.any(String) });
  });

  it("of chosen endpoints tells itself which they are, and nothing of other keys", async () => {
    const scope = { endpoints: [{ id: endpoint.id, access: "read" }] };
    const { key, id } = await newKey({ scope });
    expect(await made(http.get("/v1/apikeys/self", { key }))).toMatchObject({ id, scope });
    expect((await http.get(`/v1/apikeys/${id}`, { key })).status).toBe(401);
  });

  it("of a scope does what the scope allows, which may be changed", async () => {
    const other = await scene.endpoint({ name: "other" });
    const { key, id } = await newKey({ scope: { endpoints: [{ id: endpoint.id, access: "read" }] } });
    const run = (of: Endpoint) => http.post(`/v2/${of.id}/run`, { input: {} }, { key });
    const health = (of: Endpoint) => http.get(`/v2/${of.id}/health`, { key });
    const statuses = async () =>
      Promise.all([health(endpoint), run(endpoint), health(other), rename(key)]).then((all) =>
        all.map((each) => each.status),
      );
    expect(await statuses()).toEqual([200, 401, 404, 401]);
    const change = (scope: unknown) => made(http.call("PATCH", `/v1/apikeys/${id}`, { body: { scope } }));
    const may = { endpoints: [{ id: endpoint.id, access: "run" }] };
    expect((await change(may)).scope).toEqual(may);
    expect(await statuses()).toEqual([200, 200, 404, 401]);
    await change("read");
    expect(await statuses()).toEqual([200, 401, 200, 401]);
    await change("all");
    expect(await statuses()).toEqual([200, 200, 200, 200]);
  });

  it("is refused with an invalid scope, an endpoint of another user, and an expiry that is no time to come", async () => {
    const { key } = await newKey({ userId: (await newUser("one")).id });
    const scope = { endpoints: [{ id: endpoint.id, access: "run" }] };
    const create = (body: object) => http.post("/v1/apikeys", { name: "k", ...body }, { key });
    await refused(create({ scope }), 404, /no endpoint/);
    for (const wrong of ["everything", { endpoints: [] }, { endpoints: [{ id: "x", access: "write" }] }, {}])
      await refused(create({ scope: wrong }), 400, /'scope.*' must/);
    for (const expiresAt of ["tomorrow", "", 5, "2030-13-01T00:00:00Z", "2030-01-01"])
      await refused(create({ expiresAt }), 400, /'expiresAt' must be a time in RFC 3339 format/);
    const now = new Date(scene.clock.now()).toISOString();
    for (const expiresAt of ["2016-12-31t23:59:60z", "2020-01-01T00:00:00.5+01:00", now])
      await refused(create({ expiresAt }), 400, /^'expiresAt' is over: 20.* Give a time to come/);
    await refused(create({ name: "" }), 400, /name/);
  });

  it("is made for others by an admin alone, and for the first admin by itself alone", async () => {
    const [one, boss] = [await newUser("one"), await newUser("boss", "admin")];
    const [{ key }, { key: bosses, id }] = [await newKey({ userId: one.id }), await newKey({ userId: boss.id })];
    await refused(http.post("/v1/apikeys", { name: "k", userId: boss.id }, { key }), 404, /no user/);
    await refused(http.get(`/v1/apikeys/${id}`, { key }), 404, /no API key/);
    await refused(http.get(`/v1/apikeys?userId=${boss.id}`, { key }), 404, /no user/);
    await refused(http.post("/v1/apikeys", { name: "k", userId: adminId() }, { key: bosses }), 401, /first admin/);
    expect(await newKey({ userId: one.id }, bosses)).toMatchObject({ userId: one.id });
    expect(await made(http.get(`/v1/apikeys?userId=${one.id}`, { key: bosses }))).toHaveLength(2);
    expect(await made(http.get("/v1/apikeys", { key }))).toHaveLength(2);
  });

  it("ends at once if its expiry is changed to a past time", async () => {
    for (const expiresAt of ["2016-12-31t23:59:60z", "2020-01-01T00:00:00.5+01:00"]) {
      const { key, id } = await newKey({});
      await made(http.call("PATCH", `/v1/apikeys/${id}`, { body: { expiresAt } }));
      await refused(rename(key), 401, /has expired/);
    }
  });

  it("works until it expires", async () => {
    const expiresAt = new Date(scene.clock.now() + 60_000).toISOString();
    const { key, id } = await newKey({ expiresAt });
    expect(await made(http.get(`/v1/apikeys/${id}`))).toMatchObject({ expiresAt });
    await scene.advance(59_999);
    expect((await rename(key)).status).toBe(200);
    await scene.advance(1);
    await refused(rename(key), 401, /has expired/);
    await refused(http.get(`/v2/${endpoint.id}/health`, { key }), 401, /has expired/);
    await made(http.call("PATCH", `/v1/apikeys/${id}`, { body: { expiresAt: null } }));
    expect((await rename(key)).status).toBe(200);
  });

  it("that is rotated works for the requested time, and then only the new key does", async () => {
    const { key: old, id } = await newKey({});
    const rotated = await made(http.post(`/v1/apikeys/${id}/rotate`, { overlapSeconds: 60 }));
    expect(rotated).toMatchObject({ id, oldPrefix: old.slice(0, 6), oldUntil: expect.any(String) });
    expect([(await rename(old)).status, (await rename(rotated.key)).status]).toEqual([200, 200]);
    await scene.advance(60_000);
    await refused(rename(old), 401, /rotated/);
    expect((await rename(rotated.key)).status).toBe(200);
    const again = await made(http.post(`/v1/apikeys/${id}/rotate`, { overlapSeconds: 0 }));
    await refused(rename(rotated.key), 401, /valid API key/);
    expect((await rename(again.key)).status).toBe(200);
    const third = await made(http.post(`/v1/apikeys/${id}/rotate`, {}));
    await scene.advance(limits.keyOverlapMsDefault - 1);
    expect((await rename(again.key)).status).toBe(200);
    expect((await rename(third.key)).status).toBe(200);
  });

  it("that is deleted no longer works", async () => {
    const { key, id } = await newKey({});
    expect((await http.call("DELETE", `/v1/apikeys/${id}`)).status).toBe(204);
    await refused(rename(key), 401, /valid API key/);
    await refused(http.get(`/v1/apikeys/${id}`), 404, /no API key/);
  });

  it("shows when it was last used, also after a restart", async () => {
    const { key, id } = await newKey({});
    const lastUse = async () => (await made(http.get(`/v1/apikeys/${id}`))).lastUsedAt;
    expect(await lastUse()).toBeUndefined();
    scene.run(noteUsesLoop(scene.parts));
    await http.get(`/v2/${endpoint.id}/health`, { key });
    const usedAt = new Date(scene.clock.now()).toISOString();
    expect(await lastUse()).toBe(usedAt);
    await scene.advance(limits.keyUseMs);
    await http.close();
    scene = await scene.restart();
    http = await openHttp(scene);
    expect(await lastUse()).toBe(usedAt);
  });

  it("cannot be made without end", async () => {
    const { id } = await newUser("one");
    for (let n = 0; n < limits.keysPerUserMax; n++) await newKey({ userId: id });
    await refused(http.post("/v1/apikeys", { name: "k", userId: id }), 400, /100 API keys/);
  });
});

describe("The requests held for a key end with the key:", () => {
  beforeEach(() => scene.run(endCallsLoop(scene.parts)));
  const held = async (calls: number) => scene.until(() => scene.parts.heldCalls.size === calls);

  it.each([
    ["deleted", ({ id }: { id: string }) => http.call("DELETE", `/v1/apikeys/${id}`)],
    ["rotated", ({ id }: { id: string }) => http.post(`/v1/apikeys/${id}/rotate`, { overlapSeconds: 0 })],
    ["expired", () => scene.advance(60_000)],
  ])("a /runsync, a stream and a followed log, when it is %s", async (_, end) => {
    const expiresAt = new Date(scene.clock.now() + 60_000).toISOString();
    const made = await newKey({ expiresAt });
    const { key } = made;
    const sync = http.post(`/v2/${endpoint.id}/runsync?wait=300000`, { input: {} }, { key });
    const job = await scene.submit(endpoint);
    const events = { accept: "text/event-stream" };
    const stream = http.get(`/v2/${endpoint.id}/stream/${job}`, { key, headers: events }).catch(() => "cut");
    const log = await followLog(scene, `${http.url}/v1/endpoints/${endpoint.id}/logs?follow=true`, {
      authorization: `Bearer ${key}`,
    });
    await held(1);
    await end(made);
    await scene.advance(limits.keyLookMs);
    expect([(await sync).status, (await sync).json.error]).toEqual([401, expect.stringMatching(/revoked/)]);
    expect(await stream).toBe("cut");
    await log.over();
    expect(scene.parts.heldCalls.size).toBe(0);
    expect((await http.get(`/v2/${endpoint.id}/health`)).json.jobs.inQueue).toBe(2); // the jobs go on
  });

  it("not the requests held for the rotated key's new text, nor for other keys", async () => {
    const { key, id } = await newKey({});
    const { key: fresh } = await made(http.post(`/v1/apikeys/${id}/rotate`, { overlapSeconds: 60 }));
    const syncs = [key, fresh, scene.key].map((each) =>
      http.post(`/v2/${endpoint.id}/runsync?wait=100000`, { input: {} }, { key: each }),
    );
    await held(3);
    await scene.advance(61_000);
    expect((await syncs[0]!).status).toBe(401);
    await held(2);
    await scene.advance(40_000);
    for (const sync of syncs.slice(1)) expect(await sync).toMatchObject({ status: 200, json: { status: "IN_QUEUE" } });
  });

  it("or when it may not make them any more: others of the same key go on", async () => {
    const other = await scene.endpoint();
    const { key, id } = await newKey({});
    const change = (access: Record<string, string>) => {
      const endpoints = Object.entries(access).map(([of, may]) => ({ id: of, access: may }));
      return made(http.call("PATCH", `/v1/apikeys/${id}`, { body: { scope: { endpoints } } }));
    };
    const wait = (at: Endpoint) => http.post(`/v2/${at.id}/runsync?wait=100000`, { input: {} }, { key });
    const [sync, kept] = [wait(endpoint), wait(other)];
    const log = await followLog(scene, `${http.url}/v1/endpoints/${endpoint.id}/logs?follow=true`, {
      authorization: `Bearer ${key}`,
    });
    await held(1);
    await change({ [endpoint.id]: "read", [other.id]: "run" });
    await scene.advance(limits.keyLookMs);
    expect([(await sync).status, (await sync).json.error]).toEqual([401, expect.stringMatching(/narrowed/)]);
    expect(log.isOver()).toBe(false);
    await change({ [other.id]: "run" });
    await scene.advance(limits.keyLookMs);
    await log.over();
    expect(scene.parts.heldCalls.size).toBe(1);
    await scene.advance(100_000);
    expect(await kept).toMatchObject({ status: 200, json: { status: "IN_QUEUE" } });
  });
});
