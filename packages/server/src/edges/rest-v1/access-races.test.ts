import { request } from "node:http";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { limits } from "../../limits/index.js";
import { changeAs } from "../../operations/access/change-as.js";
import { deleteKey } from "../../operations/access/save-key.js";
import { fillSecrets } from "../../operations/access/save-secret.js";
import { type Answer, type Http, openHttp } from "../../testing/http-fixture.js";
import { refused, Scene } from "../../testing/scene-fixture.js";

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
const patch = (path: string, body: object, key?: string) => http.call("PATCH", path, { body, ...(key ? { key } : {}) });
const remove = (path: string, key?: string) => http.call("DELETE", path, key ? { key } : {});
const newUser = (name: string, role?: string, key?: string) =>
  made(http.post("/v1/users", { name, ...(role && { role }) }, key ? { key } : {}));
const newKey = (body: object, key?: string) =>
  made(http.post("/v1/apikeys", { name: "k", ...body }, key ? { key } : {}));
const template = (body: object, key: string) =>
  made(http.post("/v1/templates", { name: "t", imageName: "an/image", ...body }, { key }));
const endpoint = (templateId: string, key: string) =>
  made(http.post("/v1/endpoints", { name: "e", templateId }, { key }));
const firstAdmin = () => scene.parts.registry.user(scene.admin.ownerNo)?.id as string;

/** A request whose body the server waits for; `finish` sends it and resolves with the status of the reply. */
async function slow(path: string, body: object, key: string): Promise<{ finish: () => Promise<number | undefined> }> {
  const text = JSON.stringify(body);
  const headers = { authorization: `Bearer ${key}`, "content-length": Buffer.byteLength(text), expect: "100-continue" };
  const asked = request({ port: http.port, method: "POST", path, headers });
  const answered = new Promise<number | undefined>((done) => {
    asked.on("response", (reply) => {
      reply.resume();
      done(reply.statusCode);
    });
  });
  await new Promise((go) => {
    asked.once("continue", go);
    asked.flushHeaders();
  });
  asked.write(text.slice(0, 1)); // the key is checked once the head is read
  await expect.poll(() => scene.parts.registry.flushUses().then(() => isUsed(key))).toBe(true);
  const finish = () => {
    asked.end(text.slice(1));
    return answered;
  };
  return { finish };
}

async function isUsed(text: string): Promise<boolean> {
  const key = scene.parts.registry.key(scene.parts.vault.hashKey(text));
  return key !== undefined && (await scene.parts.registry.lastUses([key])).has(key.no);
}

const mutation = { query: 'mutation { secretCreate(input: { name: "late", value: "a-late-value" }) { id } }' };

describe("A change whose body arrives after its key was", () => {
  it("revoked is refused over every interface", async () => {
    const { key, id } = await newKey({ userId: (await newUser("one")).id });
    const late = [await slow("/v1/apikeys", { name: "late" }, key), await slow("/graphql", mutation, key)];
    expect((await remove(`/v1/apikeys/${id}`)).status).toBe(204);
    for (const { finish } of late) expect(await finish()).toBe(401);
  });

  it("narrowed is refused", async () => {
    const { key, id } = await newKey({});
    const late = [await slow("/v1/apikeys", { name: "late" }, key), await slow("/graphql", mutation, key)];
    await made(patch(`/v1/apikeys/${id}`, { scope: "read" }));
    for (const { finish } of late) expect(await finish()).toBe(401);
  });

  it("an admin's is refused what only admins may", async () => {
    const user = await newUser("two", "admin");
    const { key } = await newKey({ userId: user.id });
    const late = await slow("/v1/users", { name: "late", role: "admin" }, key);
    await made(patch(`/v1/users/${user.id}`, { role: "member" }));
    expect(await late.finish()).toBe(401);
  });

  it("ended with its user makes nothing", async () => {
    const user = await newUser("gone");
    const { key } = await newKey({ userId: user.id });
    const late = [
      await slow("/v1/templates", { name: "late", imageName: "an/image" }, key),
      await slow("/v1/secrets", { name: "late", value: "a-late-value" }, key),
    ];
    expect((await remove(`/v1/users/${user.id}`)).status).toBe(204);
    for (const { finish } of late) expect(await finish()).toBe(401);
  });

  it("revoked by a change before it in the queue is refused, too", async () => {
    const { key, id } = await newKey({});
    const caller = scene.parts.registry.key(scene.parts.vault.hashKey(key));
    const gone = deleteKey(scene.parts, scene.admin, id);
    await refused(
      changeAs(scene.parts, caller!, async () => "made"),
      "UNAUTHORIZED",
    );
    await gone;
  });
});

describe("A key", () => {
  it("that was rotated away changes no keys and users, though it still works", async () => {
    const { key: old, id } = await newKey({});
    await made(http.post(`/v1/apikeys/${id}/rotate`, {}, { key: old }));
    expect((await http.get("/v1/endpoints", { key: old })).status).toBe(200);
    for (const asked of [
      http.post(`/v1/apikeys/${id}/rotate`, { overlapSeconds: 0 }, { key: old }),
      http.post("/v1/apikeys", { name: "more" }, { key: old }),
      http.post("/v1/users", { name: "more" }, { key: old }),
    ]) {
      const { status, json } = await asked;
      expect([status, json.error]).toEqual([401, expect.stringMatching(/rotated/)]);
    }
  });

  it("that expires makes and changes none that outlives it", async () => {
    const expiresAt = new Date(scene.clock.now() + 60_000).toISOString();
    const later = new Date(scene.clock.now() + 120_000).toISOString();
    const { key, id } = await newKey({ expiresAt });
    const { id: lasting } = await newKey({});
    for (const asked of [
      patch(`/v1/apikeys/${lasting}`, { name: "renamed" }, key),
      http.post(`/v1/apikeys/${lasting}/rotate`, {}, { key }),
      http.post(`/v1/apikeys/${scene.admin.id}/rotate`, {}, { key }),
      patch(`/v1/apikeys/${id}`, { expiresAt: null }, key),
      patch(`/v1/apikeys/${id}`, { expiresAt: later }, key),
      http.post("/v1/apikeys", { name: "more" }, { key }),
    ]) {
      const { status, json } = await asked;
      expect([status, json.error]).toEqual([401, expect.stringMatching(/expires at/)]);
    }
    expect(await newKey({ expiresAt }, key)).toMatchObject({ expiresAt });
    expect(await made(patch(`/v1/apikeys/${id}`, { name: "its own" }, key))).toMatchObject({ expiresAt });
  });

  it("counts towards its user's most even after it has expired", async () => {
    const { key } = await newKey({ userId: (await newUser("many")).id });
    const expiresAt = new Date(scene.clock.now() + 60_000).toISOString();
    for (let n = 1; n < limits.keysPerUserMax; n++) await newKey({ expiresAt }, key);
    await scene.advance(60_000);
    expect((await http.post("/v1/apikeys", { name: "more" }, { key })).json.error).toMatch(/expired ones included/);
  });

  it("has ended once the machine's clock says so, however far the service's own clock is behind", async () => {
    const { key } = await newKey({ expiresAt: new Date(scene.clock.now() + 60_000).toISOString() });
    expect((await http.get("/v1/endpoints", { key })).status).toBe(200);
    scene.clock.wallNow = () => scene.clock.now() + 60_000;
    expect((await http.get("/v1/endpoints", { key })).status).toBe(401);
  });
});

describe("Another user's secrets", () => {
  const refers = { X: "{{ RUNPOD_SECRET_hub-token }}" };

  it("are not put into what they inherit from a deleted user", async () => {
    await made(http.post("/v1/secrets", { name: "hub-token", value: "the-admin's-own" }));
    const user = await newUser("mule");
    const { key } = await newKey({ userId: user.id });
    const { id } = await endpoint((await template({}, key)).id, key);
    await made(patch(`/v1/endpoints/${id}`, { env: refers }, key));
    const asked = await remove(`/v1/users/${user.id}?transferTo=${firstAdmin()}`);
    expect([asked.status, asked.json.error]).toEqual([400, expect.stringMatching(/refers to a secret 'hub-token'/)]);
  });

  it("are out of another admin's reach: only the first admin may hand things over to itself", async () => {
    const admin = await newUser("second", "admin");
    const { key } = await newKey({ userId: admin.id });
    const mule = await newUser("mule", "member", key);
    const asked = await remove(`/v1/users/${mule.id}?transferTo=${firstAdmin()}`, key);
    expect([asked.status, asked.json.error]).toEqual([401, expect.stringMatching(/first admin/)]);
  });

  it("are not read by the author of a public template", async () => {
    const [author, user] = [await newUser("author"), await newUser("user")];
    const [ofAuthor, ofUser] = [await newKey({ userId: author.id }), await newKey({ userId: user.id })];
    await made(http.post("/v1/secrets", { name: "hub-token", value: "the-user's-own" }, { key: ofUser.key }));
    const shared = await template({ isPublic: true, env: refers }, ofAuthor.key);
    const { id } = await endpoint(shared.id, ofUser.key);
    const { ownerNo } = scene.parts.registry.endpoint(id)!;
    const foreign = { env: refers, isOwn: false };
    await expect(fillSecrets(scene.parts, ownerNo, foreign, {})).rejects.toThrow(
      /belongs to another user.*'hub-token'/,
    );
    const filled = await fillSecrets(scene.parts, ownerNo, foreign, refers);
    expect(filled.env.X).toBe("the-user's-own");
    const asked = await remove(`/v1/users/${author.id}?deleteResources=true`);
    expect([asked.status, asked.json.error]).toEqual([400, expect.stringMatching(/used by others: use \?transferTo/)]);
    const { json, status } = await remove(`/v1/templates/${shared.id}`, ofAuthor.key);
    expect([status, json.error]).toEqual([400, "Another user's endpoint uses this public template."]);
    expect((await remove(`/v1/users/${author.id}?transferTo=${user.id}`)).status).toBe(400); // refers to what it lacks
  });

  it("named thousands of times do not fill the memory: the start fails in words", async () => {
    await made(http.post("/v1/secrets", { name: "large", value: "x".repeat(limits.secretCharsMax) }));
    const env = { X: "{{RUNPOD_SECRET_large}}".repeat(10_000) };
    const asked = fillSecrets(scene.parts, scene.admin.ownerNo, { env, isOwn: true }, {});
    await expect(asked).rejects.toThrow(/more than 524288 characters/);
  });
});
