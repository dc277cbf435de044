import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { Endpoint } from "../domain/endpoints/endpoint.js";
import { type Http, openHttp } from "../testing/http-fixture.js";
import { Scene } from "../testing/scene-fixture.js";

let scene: Scene;
let http: Http;
let endpoint: Endpoint;
let other: Endpoint;
let jobId: string;
beforeAll(async () => {
  scene = await Scene.open();
  endpoint = await scene.endpoint({ name: "mine", env: { TOKEN: "of-mine" } });
  other = await scene.endpoint({ name: "other", env: { TOKEN: "of-other" } });
  await scene.addKey("mr_read-only", scene.admin.ownerNo, { kind: "readOnly" });
  await scene.addKey("mr_bound", scene.admin.ownerNo, { kind: "endpoints", access: { [endpoint.id]: "run" } });
  http = await openHttp(scene, { rates: undefined });
});
beforeEach(async () => {
  jobId = await scene.submit(endpoint);
});
afterAll(async () => {
  await http.close();
  await scene.close();
});

const statusOf = async (key: string, method: string, path: string, body?: unknown) =>
  (await http.call(method, path, { key, ...(body === undefined ? {} : { body }) })).status;
const graphql = (key: string, query: string) => http.post(`/graphql?api_key=${key}`, { query }, { key: null });

const jobReads = (id: string): [string, string][] => [
  ["GET", `/v2/${id}/status/${jobId}`],
  ["POST", `/v2/${id}/status/${jobId}`],
  ["GET", `/v2/${id}/status-sync/${jobId}?wait=1`],
  ["GET", `/v2/${id}/stream/${jobId}?wait=0`],
  ["GET", `/v2/${id}/health`],
  ["GET", `/v2/${id}/requests`],
];
const jobChanges = (id: string): [string, string][] => [
  ["POST", `/v2/${id}/run`],
  ["POST", `/v2/${id}/runsync`],
  ["POST", `/v2/${id}/cancel/${jobId}`],
  ["POST", `/v2/${id}/retry/${jobId}`],
  ["POST", `/v2/${id}/purge-queue`],
  ["GET", `/v2/${id}/status/${jobId}?ttl=20000`],
];
const resourceChanges = (): [string, string][] => [
  ["POST", "/v1/endpoints"],
  ["PATCH", `/v1/endpoints/${endpoint.id}`],
  ["POST", `/v1/endpoints/${endpoint.id}/update`],
  ["DELETE", `/v1/endpoints/${endpoint.id}`],
  ["POST", "/v1/templates"],
  ["PATCH", `/v1/templates/${endpoint.settings.templateId}`],
  ["DELETE", `/v1/templates/${endpoint.settings.templateId}`],
  ["POST", "/v1/networkvolumes"],
  ["DELETE", "/v1/networkvolumes/nothing"],
  ["POST", "/v1/containerregistryauth"],
  ["DELETE", "/v1/containerregistryauth/nothing"],
];

describe("A key that may only read", () => {
  const key = "mr_read-only";

  it("reads jobs and resources", async () => {
    for (const [method, path] of jobReads(endpoint.id).filter(([, path]) => !path.includes("sync"))) {
      expect([path, await statusOf(key, method, path)]).toEqual([path, 200]);
    }
    for (const path of ["/v1/endpoints", `/v1/endpoints/${endpoint.id}`, "/v1/templates", "/v1/networkvolumes"]) {
      expect([path, await statusOf(key, "GET", path)]).toEqual([path, 200]);
    }
    expect((await graphql(key, "{ myself { id endpoints { id } } }")).json.data.myself.endpoints).toHaveLength(2);
  });

  it("is 401 for every change, a ttl included", async () => {
    for (const [method, path] of [...jobChanges(endpoint.id), ...resourceChanges()]) {
      expect([method, path, await statusOf(key, method, path, method === "GET" ? undefined : {})]).toEqual([
        method,
        path,
        401,
      ]);
    }
    const mutation = await graphql(key, `mutation { deleteEndpoint(id: "${endpoint.id}") }`);
    expect([mutation.status, mutation.json.errors[0].extensions.code]).toEqual([401, "UNAUTHORIZED"]);
    expect(await scene.status(endpoint, jobId)).toMatchObject({ status: "IN_QUEUE" });
  });

  it("does not read the secret that signs webhooks", async () => {
    expect(await statusOf(key, "GET", "/v1/webhooks/secret")).toBe(401);
    expect(await statusOf("mr_bound", "GET", "/v1/webhooks/secret")).toBe(401);
    expect((await http.get("/v1/webhooks/secret")).json.secret).toMatch(/^whsec_/);
  });
});

describe("A key of named endpoints", () => {
  const key = "mr_bound";

  it("works with their jobs", async () => {
    expect(await statusOf(key, "GET", `/v2/${endpoint.id}/status/${jobId}?ttl=20000`)).toBe(200);
    expect(await statusOf(key, "POST", `/v2/${endpoint.id}/run`, { input: {} })).toBe(200);
    expect(await statusOf(key, "POST", `/v2/${endpoint.id}/cancel/${jobId}`)).toBe(200);
    expect(await statusOf(key, "POST", `/v2/${endpoint.id}/purge-queue`)).toBe(200);
  });

  it("is 404 for all other endpoints", async () => {
    for (const [method, path] of [...jobReads(other.id), ...jobChanges(other.id)]) {
      expect([path, await statusOf(key, method, path)]).toEqual([path, 404]);
    }
  });

  it("is 401 for changes of resources", async () => {
    for (const [method, path] of resourceChanges()) {
      expect([method, path, await statusOf(key, method, path, {})]).toEqual([method, path, 401]);
    }
  });

  it("sees no other endpoint among the resources", async () => {
    expect(await statusOf(key, "GET", `/v1/endpoints/${other.id}`)).toBe(404);
    expect(await statusOf(key, "GET", `/v1/endpoints/${other.id}/scaling`)).toBe(404);
    const list = await http.get("/v1/endpoints", { key });
    expect(list.json.map(({ id }: { id: string }) => id)).toEqual([endpoint.id]);
    expect(list.text).not.toContain("of-other");
  });

  it("sees no other endpoint over GraphQL", async () => {
    const { json, text } = await graphql(key, "{ myself { endpoints { id env { value } } } }");
    expect(json.data.myself.endpoints.map(({ id }: { id: string }) => id)).toEqual([endpoint.id]);
    expect(text).not.toContain("of-other");
  });

  it("sees its endpoint's template without values, its volume's name, and nothing else of management", async () => {
    const { json: all } = await http.get(`/v1/endpoints/${endpoint.id}?includeTemplate=true`);
    const { json: volume } = await http.post("/v1/networkvolumes", { name: "v", size: 1, dataCenterId: "EU-RO-1" });
    await http.call("PATCH", `/v1/endpoints/${endpoint.id}`, { body: { networkVolumeId: volume.id } });
    const { json: shown, text } = await http.get(`/v1/endpoints/${endpoint.id}?includeTemplate=true`, { key });
    expect(shown).toMatchObject({ id: endpoint.id, name: all.name, env: { TOKEN: "…" } });
    expect(text).not.toContain("of-mine");
    const { templateId } = endpoint.settings;
    expect((await http.get("/v1/templates", { key })).json).toMatchObject([{ id: templateId }]);
    expect(await statusOf(key, "GET", `/v1/templates/${templateId}`)).toBe(200);
    expect(await statusOf(key, "GET", `/v1/templates/${other.settings.templateId}`)).toBe(404);
    expect((await http.get("/v1/networkvolumes", { key })).json).toEqual([{ id: volume.id, name: "v" }]);
    expect((await http.get(`/v1/networkvolumes/${volume.id}`, { key })).json).toEqual({ id: volume.id, name: "v" });
    const { json: detached } = await http.post("/v1/networkvolumes", { name: "w", size: 1, dataCenterId: "EU-RO-1" });
    expect(await statusOf(key, "GET", `/v1/networkvolumes/${detached.id}`)).toBe(404);
    for (const path of ["webhooks/deliveries", "containerregistryauth", "users", "apikeys", "webhooks/secret"])
      expect([path, await statusOf(key, "GET", `/v1/${path}`)]).toEqual([path, 401]);
    const { text: answer } = await graphql(
      key,
      "{ myself { podTemplates { id env { key value } } endpoints { env { value } } } }",
    );
    expect(answer).toContain(templateId);
    expect(answer).not.toContain("of-mine");
    expect(answer).not.toContain(other.settings.templateId);
  });

  it("does not see its user's discount, and the query of clients that ask for it beside the endpoints works", async () => {
    const query = "{ myself { endpoints { id } serverlessDiscount { discountFactor } } }";
    const user = (await http.get("/v1/users")).json[0];
    await http.call("PATCH", `/v1/users/${user.id}`, { body: { serverlessDiscount: 0.25 } });
    const seen = async (key: string) => (await graphql(key, query)).json.data.myself.serverlessDiscount;
    expect(await seen("mr_read-only")).toEqual({ discountFactor: 0.25 });
    expect((await graphql(key, query)).json).toEqual({
      data: { myself: { endpoints: [{ id: endpoint.id }], serverlessDiscount: null } },
    });
  });
});

describe("An endpoint asked for by its name", () => {
  const refusalTo = async (key: string, path: string) => {
    const { status, json } = await http.get(path, { key });
    return [status, json.code, json.error];
  };

  it.each(["/v2/other/health", "/v2/other/status/nothing", "/v1/endpoints/other"])(
    "is refused with its id, by %s, to a key that sees it",
    async (path) => {
      const error = `'other' is the name of an endpoint: send its id, ${other.id}, instead.`;
      expect(await refusalTo("mr_read-only", path)).toEqual([404, "ENDPOINT_NOT_FOUND", error]);
      const unknown = "There is no endpoint 'other' for this key; the list of endpoints shows yours.";
      expect(await refusalTo("mr_bound", path)).toEqual([404, "ENDPOINT_NOT_FOUND", unknown]);
    },
  );
});

describe("Another user", () => {
  let key: string;
  beforeEach(async () => {
    ({ key } = await scene.stranger());
  });

  it("gets exactly the reply for an unknown endpoint or job", async () => {
    const refusal = async (path: string) => {
      const { status, json } = await http.get(path, { key });
      return [status, json.code, json.error.replaceAll(/'.*?'/g, "'…'")];
    };
    const unknown = await refusal("/v2/aaaaaaaaaaaaaa/health");
    for (const [method, path] of [...jobReads(endpoint.id), ...jobChanges(endpoint.id)]) {
      expect([path, await statusOf(key, method, path)]).toEqual([path, 404]);
    }
    expect(await refusal(`/v2/${endpoint.id}/health`)).toEqual(unknown);
    expect(await refusal(`/v1/endpoints/${endpoint.id}`)).toEqual(await refusal("/v1/endpoints/aaaaaaaaaaaaaa"));
    const byName = encodeURIComponent(endpoint.settings.name);
    for (const path of [`/v2/${byName}/health`, `/v1/endpoints/${byName}`])
      expect(await refusal(path)).toEqual(unknown);
  });

  it("can neither see nor change my resources: 404, but 400 to delete a volume", async () => {
    const body = { name: "v", size: 1, dataCenterId: "here" };
    const { json: volume } = await http.post("/v1/networkvolumes", body);
    const { templateId } = endpoint.settings;
    const paths = [`/v1/endpoints/${endpoint.id}`, `/v1/templates/${templateId}`, `/v1/networkvolumes/${volume.id}`];
    for (const path of paths) {
      expect([path, await statusOf(key, "GET", path)]).toEqual([path, 404]);
      expect([path, await statusOf(key, "PATCH", path, { name: "stolen" })]).toEqual([path, 404]);
      expect([path, await statusOf(key, "DELETE", path)]).toEqual([path, path.includes("volumes") ? 400 : 404]);
    }
    const secret = { name: "r", username: "u", password: "p" };
    const auth = `/v1/containerregistryauth/${(await http.post("/v1/containerregistryauth", secret)).json.id}`;
    for (const method of ["GET", "DELETE"]) expect([method, await statusOf(key, method, auth)]).toEqual([method, 404]);
    const lists = ["endpoints", "templates", "networkvolumes", "containerregistryauth", "webhooks/deliveries"];
    for (const path of lists.map((name) => `/v1/${name}`)) {
      expect([path, (await http.get(path, { key })).json]).toEqual([path, []]);
    }
    const all =
      "{ myself { endpoints { id } networkVolumes { id } podTemplates { id } containerRegistryCreds { id } } }";
    const nothing = { endpoints: [], networkVolumes: [], podTemplates: [], containerRegistryCreds: [] };
    expect((await graphql(key, all)).json.data.myself).toEqual(nothing);
  });

  it("may not use directories as images", async () => {
    const body = { name: "local", imageName: scene.directory };
    expect(await statusOf(key, "POST", "/v1/templates", body)).toBe(401);
  });
});
