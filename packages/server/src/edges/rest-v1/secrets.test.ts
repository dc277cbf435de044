import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { limits } from "../../limits/index.js";
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

const value = "a-very-secret-value";
const made = async (asked: Promise<Answer>) => {
  const { status, json, text } = await asked;
  expect(status, text).toBe(200);
  expect(text).not.toContain(value);
  return json;
};
const create = (body: object, key?: string) => http.post("/v1/secrets", body, key === undefined ? {} : { key });
const refused = async (asked: Promise<Answer>, status: number, words: RegExp) => {
  const { status: got, json, text } = await asked;
  expect([got, json?.error], text).toEqual([status, expect.stringMatching(words)]);
};

describe("A secret", () => {
  it("is kept sealed, and shown without its value", async () => {
    const secret = await made(create({ name: "token", value, description: "of the hub" }));
    expect(secret).toEqual({
      id: expect.stringMatching(/^[a-z0-9]{14}$/),
      name: "token",
      description: "of the hub",
      createdAt: expect.any(String),
    });
    expect(await made(http.get("/v1/secrets"))).toEqual([secret]);
    expect(await made(http.get(`/v1/secrets/${secret.id}`))).toEqual(secret);
    const stored = await scene.stores.secrets.values(scene.admin.ownerNo, ["token", "other"]);
    expect([...stored.keys()]).toEqual(["token"]);
    expect(stored.get("token")).not.toContain(value);
    expect((await http.call("DELETE", `/v1/secrets/${secret.id}`)).status).toBe(204);
    expect(await made(http.get("/v1/secrets"))).toEqual([]);
    await refused(http.call("DELETE", `/v1/secrets/${secret.id}`), 404, /no secret/);
  });

  it("is made, listed and deleted over GraphQL, by the same rules", async () => {
    const graphql = (query: string) => http.post("/graphql", { query });
    const asked =
      'mutation { secretCreate(input: { name: "token", value: "VALUE" }) { id name description createdAt } }';
    const { secretCreate } = (await made(graphql(asked.replace("VALUE", value)))).data;
    expect(await made(http.get("/v1/secrets"))).toEqual([secretCreate]);
    const { data } = await made(graphql("{ myself { secrets { id name description createdAt } } }"));
    expect(data.myself.secrets).toEqual([secretCreate]);
    expect((await graphql(asked.replace("VALUE", "abc"))).json.errors[0].message).toMatch(/4 characters/);
    expect((await made(graphql(`mutation { secretDelete(id: "${secretCreate.id}") }`))).data.secretDelete).toBe(true);
    expect(await made(http.get("/v1/secrets"))).toEqual([]);
  });

  it("gets another value or description, and keeps the other", async () => {
    const secret = await made(create({ name: "token", value, description: "of the hub" }));
    const path = `/v1/secrets/${secret.id}`;
    const change = (body: object, key?: string) => http.call("PATCH", path, { body, ...(key ? { key } : {}) });
    const sealed = async () => (await scene.stores.secrets.values(scene.admin.ownerNo, ["token"])).get("token");
    const old = await sealed();
    expect(await made(change({ description: "of another hub" }))).toEqual({ ...secret, description: "of another hub" });
    expect(await sealed()).toBe(old);
    expect(await made(change({ value: `${value}-2` }))).toEqual({ ...secret, description: "of another hub" });
    expect(await sealed()).not.toBe(old);
    expect(await made(change({ description: "" }))).toEqual({ ...secret, description: "" });
    await made(change({ description: "again" }));
    expect(await made(change({ description: null }))).toEqual({ ...secret, description: "" });
    await refused(change({ value: null }), 400, /value/);
    await refused(change({ value: "abc" }), 400, /value/);
    await refused(change({ value: "a\0bcd" }), 400, /NUL/);
    await refused(change({ value }, (await scene.stranger()).key), 404, /no secret/);
    const ignored = await change({ name: "other", description: "x" });
    expect(ignored.headers.get("x-millrace-ignored")).toBe("name");
    expect(ignored.json.name).toBe("token");
  });

  it("is refused with an invalid or taken name, with too short a value, and beyond a number", async () => {
    for (const name of ["", "a b", "a.b", "é"]) await refused(create({ name, value }), 400, /name/);
    await refused(create({ name: "short", value: "abc" }), 400, /value/);
    await refused(create({ name: "nul", value: "a\0bcd" }), 400, /NUL/);
    await made(create({ name: "token", value }));
    await refused(create({ name: "token", value }), 400, /Another secret of yours is named 'token'/);
    const { key } = await scene.stranger();
    expect((await create({ name: "token", value }, key)).status).toBe(200);
    for (let n = 1; n < limits.secretsPerUserMax; n++) await made(create({ name: `n${n}`, value }));
    await refused(create({ name: "more", value }), 400, /200 secrets/);
  });
});

describe("A worker whose environment refers to secrets", () => {
  const env = { TOKEN: "{{ RUNPOD_SECRET_token }}", HEADER: "Bearer {{RUNPOD_SECRET_token}}" };
  const started = async () => {
    const template = await scene.template({ env });
    const endpoint = await scene.endpoint({
      templateId: template.id,
      workersMin: 1,
      env: { OWN: "{{ RUNPOD_SECRET_own }}" },
    });
    await scene.runAll();
    await scene.advance(5);
    return endpoint;
  };

  it("gets a changed value, and the endpoint that failed with the old one tries again at once", async () => {
    const secret = await made(create({ name: "token", value }));
    await made(create({ name: "own", value: "another-value" }));
    await started();
    const { launches } = scene.provider;
    for (let failed = 0; failed < 5; failed++) {
      scene.provider.end(launches.at(-1)!.workerId, { code: 1 });
      if (failed < 4) await scene.advance(600_000);
    }
    await scene.advance(500); // the pause before the next start is seconds long by now
    const before = launches.length;
    await made(http.call("PATCH", `/v1/secrets/${secret.id}`, { body: { description: "no other value" } }));
    await scene.advance(500);
    expect(launches).toHaveLength(before);
    await made(http.call("PATCH", `/v1/secrets/${secret.id}`, { body: { value: "a-new-secret-value" } }));
    await scene.advance(500);
    expect(launches).toHaveLength(before + 1);
    expect(launches.at(-1)?.env).toMatchObject({ TOKEN: "a-new-secret-value" });
  });

  it("gets the values that they have at its start, and shows which variables hold them", async () => {
    await made(create({ name: "token", value }));
    await made(create({ name: "own", value: "another-value" }));
    await started();
    const [spec] = scene.provider.launches;
    expect(spec?.env).toMatchObject({ TOKEN: value, HEADER: `Bearer ${value}`, OWN: "another-value" });
    expect(spec?.hidden).toContainEqual({ variable: "HEADER", at: 7, length: value.length });
    const shown = [
      await http.get("/v1/templates"),
      await http.get("/v1/endpoints"),
      await http.get("/v1/endpoints?includeTemplate=true"),
    ];
    for (const { text } of shown) expect(text).not.toContain(value);
  });

  it("is not started while a secret is missing, and its job's status says so", async () => {
    await made(create({ name: "token", value }));
    const { key } = await scene.stranger();
    await create({ name: "own", value: "of somebody else" }, key);
    const endpoint = await started();
    expect(scene.provider.launches).toEqual([]);
    await scene.advance(20_000); // by now the pause before the next start is many seconds long
    const job = await scene.submit(endpoint);
    const status = await scene.status(endpoint, job);
    expect(status.waitDetail).toMatch(
      /refers to 'own', and its owner has no such secret: make it with POST \/v1\/secrets/,
    );
    await made(create({ name: "own", value: "another-value" }));
    await scene.advance(500);
    expect(scene.provider.launches).toHaveLength(1);
  });
});
