import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { actions as known } from "../../domain/access/audit.js";
import { limits } from "../../limits/index.js";
import { expireJobsLoop } from "../../loops/expire-jobs.js";
import { type Answer, type Http, openHttp } from "../../testing/http-fixture.js";
import { Scene } from "../../testing/scene-fixture.js";

let scene: Scene;
let http: Http;
beforeEach(async () => {
  scene = await Scene.open();
  http = await openHttp(scene);
});
afterEach(async () => {
  await http.close();
  await scene.close();
});

const made = async (asked: Promise<Answer>) => {
  const { status, json, text } = await asked;
  expect(status, text).toBe(200);
  return json;
};
const audit = async (query = "", key?: string) => made(http.get(`/v1/audit${query}`, key ? { key } : {}));
const actions = async (query = "", key?: string): Promise<string[]> =>
  (await audit(query, key)).entries.map(({ action }: { action: string }) => action);
const patch = (path: string, body: object) => http.call("PATCH", path, { body });
const template = (body: object = {}, key?: string) =>
  made(http.post("/v1/templates", { name: "t", imageName: "an/image", ...body }, key ? { key } : {}));

describe("The audit log", () => {
  it("says who changed what, when and from where, with the fields that differ and without secrets", async () => {
    const { id } = await template({ env: { TOKEN: "a-secret-value", SAME: "1" }, readme: "old" });
    const headers = { "x-request-id": "my-request" };
    const body = { readme: "new", env: { TOKEN: "another-secret", SAME: "1" } };
    await made(http.call("PATCH", `/v1/templates/${id}`, { body, headers }));
    const { entries } = await audit();
    expect(entries.map(({ action }: { action: string }) => action)).toEqual(["template.update", "template.create"]);
    expect(entries[0]).toEqual({
      at: new Date(scene.clock.now()).toISOString(),
      userId: scene.parts.registry.user(scene.admin.ownerNo)?.id,
      keyId: scene.admin.id,
      keyPrefix: scene.admin.prefix,
      address: "127.0.0.1",
      requestId: "my-request",
      action: "template.update",
      resource: id,
      before: { readme: "old", env: { TOKEN: "…" } },
      after: { readme: "new", env: { TOKEN: "…" } },
    });
    expect(entries[1]).not.toHaveProperty("before");
    expect(JSON.stringify(entries)).not.toMatch(/secret/);
  });

  it("has nothing of a change that was refused or could not be written", async () => {
    expect((await http.post("/v1/templates", { name: "t" })).status).toBe(400);
    const { id } = await template();
    await http.post("/v1/endpoints", { name: "e", templateId: id });
    expect((await http.call("DELETE", `/v1/templates/${id}`)).status).toBe(400);
    expect(await actions()).toEqual(["endpoint.create", "template.create"]);
  });

  it("is filtered, and read page by page", async () => {
    const ids: string[] = [];
    for (let n = 0; n < 5; n++) ids.unshift((await template({ name: `t${n}` })).id);
    await patch(`/v1/templates/${ids[0]}`, { readme: "r" });
    expect(await actions(`?resource=${ids[0]}`)).toEqual(["template.update", "template.create"]);
    expect(await actions("?action=template.update")).toEqual(["template.update"]);
    expect(await actions("?keyId=unknown")).toEqual([]);
    const at = scene.clock.now();
    expect(await actions(`?since=${new Date(at + 1).toISOString()}`)).toEqual([]);
    expect(await actions(`?until=${new Date(at + 1).toISOString()}`)).toHaveLength(6);
    const seen: string[] = [];
    for (let cursor: string | undefined = ""; cursor !== undefined; ) {
      const page: { entries: { resource: string }[]; nextCursor?: string } = await audit(
        `?limit=2${cursor && `&cursor=${cursor}`}`,
      );
      seen.push(...page.entries.map(({ resource }) => resource));
      cursor = page.nextCursor;
    }
    expect(seen).toEqual([ids[0], ...ids]);
    for (const query of [
      "?cursor=zzz",
      "?action=endpoint.updat",
      "?action=Endpoint.update",
      "?since=yesterday",
      "?limit=0",
      `?limit=${limits.auditPageMax + 1}`,
    ])
      expect((await http.get(`/v1/audit${query}`)).status).toBe(400);
    expect((await http.get("/v1/audit?action=x")).json.error).toBe(`'action' must be one of ${known.join(", ")}.`);
    expect((await http.get("/v1/audit?cursor=zzz")).json.error).toMatch(/^'cursor' must be the nextCursor of a reply/);
  });

  it("is seen whole by admins, and by a member as far as its own keys made the changes", async () => {
    const user = await made(http.post("/v1/users", { name: "u" }));
    const { key } = await made(http.post("/v1/apikeys", { name: "k", userId: user.id }));
    await template({}, key);
    expect(await actions("", key)).toEqual(["template.create"]);
    const { entries } = await audit(`?userId=${user.id}`);
    expect(entries).toMatchObject([{ action: "template.create", userId: user.id }]);
    expect(entries[0]).not.toHaveProperty("after"); // resources of others stay hidden from an admin
    expect(await actions()).toEqual(["template.create", "key.create", "user.create"]);
    const admin = scene.parts.registry.user(scene.admin.ownerNo)?.id;
    expect((await http.get(`/v1/audit?userId=${admin}`, { key })).status).toBe(404);
    const endpoint = await scene.endpoint();
    const scope = { endpoints: [{ id: endpoint.id, access: "run" }] };
    const bound = await made(http.post("/v1/apikeys", { name: "b", scope }));
    expect((await http.get("/v1/audit", { key: bound.key })).status).toBe(401);
  });

  it("has what a deleted user did, as long as it is kept", async () => {
    const user = await made(http.post("/v1/users", { name: "u" }));
    const { key } = await made(http.post("/v1/apikeys", { name: "k", userId: user.id }));
    const { id } = await template({}, key);
    expect((await http.call("DELETE", `/v1/templates/${id}`, { key })).status).toBe(204);
    expect((await http.call("DELETE", `/v1/users/${user.id}`)).status).toBe(204);
    const entries = ["template.delete", "template.create"];
    expect(await actions(`?userId=${user.id}`)).toEqual(entries);
    await scene.advance(limits.auditKeptMsDefault - limits.forgetMs);
    const loop = expireJobsLoop(scene.parts as Parameters<typeof expireJobsLoop>[0]);
    await loop.tick(scene.clock.now(), scene.stays);
    expect(await actions(`?userId=${user.id}`)).toEqual(entries);
    const other = await made(http.post("/v1/users", { name: "other" }));
    const others = await made(http.post("/v1/apikeys", { name: "k", userId: other.id }));
    expect((await http.get(`/v1/audit?userId=${user.id}`, { key: others.key })).status).toBe(404);
    expect(await actions("?userId=user_nobody")).toEqual([]);
  });

  it("is kept for a time", async () => {
    await template();
    const loop = expireJobsLoop(scene.parts as Parameters<typeof expireJobsLoop>[0]);
    const tick = () => loop.tick(scene.clock.now(), scene.stays);
    await scene.advance(limits.auditKeptMsDefault - 1);
    await tick();
    expect(await actions()).toHaveLength(1);
    await scene.advance(limits.forgetMs);
    await tick();
    expect(await actions()).toEqual([]);
  });
});
