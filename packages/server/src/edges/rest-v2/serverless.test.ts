import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Http, openHttp } from "../../testing/http-fixture.js";
import { Scene } from "../../testing/scene-fixture.js";

let scene: Scene;
let http: Http;
beforeAll(async () => {
  scene = await Scene.open();
  http = await openHttp(scene, { rates: undefined, lbDomain: "lb.example.com" });
});
afterAll(async () => {
  await http.close();
  await scene.close();
});

const queue = {
  name: "queue",
  type: "QUEUE",
  image: "alpine:3",
  scaling: { type: "QUEUE_DELAY", queueDelay: 4 },
};
const create = async (more: object = {}) => {
  const { status, json } = await http.post("/v2/serverless", { ...queue, ...more });
  expect(status, JSON.stringify(json)).toBe(201);
  return json;
};
const patch = (id: string, body: object) => http.call("PATCH", `/v2/serverless/${id}`, { body });
const versionOf = (id: string) => scene.parts.registry.endpoint(id)?.version;

describe("An endpoint of REST v2", () => {
  it("is created with its image, and comes back as it was sent", async () => {
    const sent = {
      ...queue,
      args: 'serve --greet "hello world"',
      disk: 12,
      ports: ["8000/http"],
      env: { MODEL: "small" },
      gpu: { pools: ["AMPERE_24", "ADA_24"], excludedTypes: ["NVIDIA L4"], count: 2 },
      workers: { min: 1, max: 5, idleTimeout: 30 },
      dataCenterIds: ["EU-RO-1"],
      timeout: 60_000,
      flashboot: "FLASHBOOT",
    };
    const made = await create(sent);
    expect(made).toMatchObject({ ...sent, args: "serve --greet 'hello world'", cpu: null, registry: null });
    expect(made.createdAt).toMatch(/^\d{4}-/);
    expect(made.requestUrls.status).toMatch(new RegExp(`^http://[^/]+/v2/${made.id}/status/\\{job_id\\}$`));
    expect((await http.get(`/v2/serverless/${made.id}`)).json).toEqual(made);
    const { endpoints } = (await http.get("/v2/serverless")).json;
    expect(endpoints).toContainEqual(made);
    // the same endpoint over v1
    expect((await http.get(`/v1/endpoints/${made.id}`)).json).toMatchObject({
      gpuTypeIds: ["NVIDIA RTX A5000", "NVIDIA GeForce RTX 3090", "NVIDIA GeForce RTX 4090"],
      executionTimeoutMs: 60_000,
      scalerValue: 4,
      workersMin: 1,
    });
  });

  it("has the defaults of its own API", async () => {
    expect(await create()).toMatchObject({
      workers: { min: 0, max: 3, idleTimeout: 10 },
      timeout: 300_000,
      flashboot: "OFF",
      gpu: { count: 1 },
      networkVolumes: [],
    });
    expect(await create({ flashboot: true, workers: { max: 1 } })).toMatchObject({
      workers: { min: 0, max: 1, idleTimeout: 10 },
      flashboot: "FLASHBOOT",
    });
  });

  it("may run on CPUs, and may be load-balanced", async () => {
    expect(await create({ cpu: { id: "cpu3c", vcpuCount: 4 } })).toMatchObject({
      gpu: null,
      cpu: { id: "cpu3c", vcpuCount: 4, memory: 8 },
    });
    const { id, requestUrls } = await create({ type: "LOAD_BALANCER" });
    expect(requestUrls).toEqual({ base: `http://${id}.lb.example.com`, health: `http://${id}.lb.example.com/ping` });
  });

  it("gets one new version by a change of its image and its settings together", async () => {
    const { id } = await create({ env: { A: "1" } });
    const changed = await patch(id, {
      image: "alpine:3.20",
      env: { B: "2" },
      gpu: { pools: ["ADA_24"] },
      workers: { max: 2 },
    });
    expect(changed.status).toBe(200);
    expect(changed.json).toMatchObject({ image: "alpine:3.20", env: { B: "2" }, gpu: { pools: ["ADA_24"] } });
    expect(changed.json.workers).toEqual({ min: 0, max: 2, idleTimeout: 10 });
    expect(versionOf(id)).toBe(2);
    expect((await patch(id, { name: "renamed", workers: { max: 4 } })).json.name).toBe("renamed");
    expect(versionOf(id)).toBe(2);
    const { releases, endpointVersion, rollout } = (await http.get(`/v2/serverless/${id}/releases`)).json;
    expect([endpointVersion, rollout.percentOnLatest]).toEqual([2, 100]);
    expect(releases[0]).toMatchObject({ version: 2, source: "MANUAL" });
    expect(releases[0].diff).toContainEqual({ field: "imageName", old: "alpine:3", new: "alpine:3.20" });
    expect(releases[1].diff).toEqual([]);
  });

  it("leaves everything as it was if any part of a change is refused", async () => {
    const made = await create();
    const refused = await patch(made.id, { image: "alpine:3.20", workers: { min: 9, max: 2 } });
    expect(refused.status).toBe(400);
    expect((await http.get(`/v2/serverless/${made.id}`)).json).toEqual(made);
    const count = scene.parts.registry.templates().length;
    expect((await http.post("/v2/serverless", { ...queue, networkVolumes: ["aaaaaaaaaaaaaa"] })).status).toBe(400);
    expect(scene.parts.registry.templates()).toHaveLength(count);
  });

  it("does not change a template that others may use, but gets a copy of it", async () => {
    const template = await scene.template({ imageName: "alpine:3", env: { KEPT: "yes" } });
    const endpoint = await scene.endpoint({ templateId: template.id, env: { OWN: "1" } });
    const { json } = await patch(endpoint.id, { image: "alpine:3.20" });
    expect(json).toMatchObject({ image: "alpine:3.20", env: { KEPT: "yes", OWN: "1" } });
    expect(scene.parts.registry.template(template.id)?.settings.imageName).toBe("alpine:3");
    const own = scene.parts.registry.endpoint(endpoint.id)?.settings.templateId as string;
    expect(own).not.toBe(template.id);
    // the second change is made in place
    await patch(endpoint.id, { image: "alpine:3.21" });
    expect(scene.parts.registry.endpoint(endpoint.id)?.settings.templateId).toBe(own);
  });

  it("is drained and deleted, whatever its workers, and its own template with it", async () => {
    const { id } = await create({ workers: { min: 1, max: 3 } });
    const templateId = scene.parts.registry.endpoint(id)?.settings.templateId as string;
    expect((await http.get(`/v1/templates/${templateId}`)).json.name).toMatch(/^queue-/);
    const gone = await http.call("DELETE", `/v2/serverless/${id}`);
    expect([gone.status, gone.text]).toEqual([204, ""]);
    expect((await http.get(`/v2/serverless/${id}`)).status).toBe(404);
    expect((await http.get(`/v1/templates/${templateId}`)).status).toBe(404);
  });

  it("shows its workers, counted by state", async () => {
    const endpoint = await scene.endpoint();
    const worker = await scene.worker(endpoint);
    await scene.running(endpoint, worker);
    const { workers, summary } = (await http.get(`/v2/serverless/${endpoint.id}/workers`)).json;
    expect(workers).toMatchObject([{ id: worker.row.id, status: "RUNNING", isStale: false, version: 1 }]);
    expect(summary).toEqual({ running: 1, idle: 0, initializing: 0, throttled: 0, unhealthy: 0, total: 1 });
  });
});

describe("A template that an endpoint of REST v2 names", () => {
  const template = async (more: object = {}) =>
    (await http.post("/v2/templates", { name: `t${Math.random()}`, image: "alpine:3.19", env: { A: "1" }, ...more }))
      .json;
  const { image: _, ...imageless } = queue;
  const from = async (body: object) => http.post("/v2/serverless", { ...imageless, ...body });
  const templateOf = (id: string) => scene.parts.registry.endpoint(id)?.settings.templateId;
  const isThere = (id: string | undefined) => scene.parts.registry.template(id ?? "") !== undefined;

  it("is the endpoint's, and stays when the endpoint is deleted", async () => {
    const { id: templateId } = await template();
    const { status, json } = await from({ templateId });
    expect([status, json]).toMatchObject([201, { image: "alpine:3.19", env: { A: "1" } }]);
    expect(templateOf(json.id)).toBe(templateId);
    await http.call("DELETE", `/v2/serverless/${json.id}`);
    expect(isThere(templateId)).toBe(true);
  });

  it("is copied if fields of the container are sent beside it, at a creation and at a change", async () => {
    const { id: templateId } = await template();
    const { json } = await from({ templateId, args: "serve", env: { B: "2" } });
    expect(json).toMatchObject({ image: "alpine:3.19", args: "serve", env: { B: "2" } });
    expect(templateOf(json.id)).not.toBe(templateId);
    const { id: otherId } = await template({ image: "alpine:3.20" });
    const changed = await patch(json.id, { templateId: otherId, disk: 9 });
    expect(changed.json).toMatchObject({ image: "alpine:3.20", args: "", disk: 9, env: { A: "1" } });
    expect([templateOf(json.id) === otherId, versionOf(json.id)]).toEqual([false, 2]);
    for (const id of [templateId, otherId])
      expect((await http.get(`/v2/templates/${id}`)).json).toMatchObject({ args: "", env: { A: "1" }, disk: 50 });
  });

  it("replaces the endpoint's own, which a rollback may bring back until the endpoint is deleted", async () => {
    const { id } = await create();
    const own = templateOf(id);
    const { id: templateId } = await template();
    expect((await patch(id, { templateId })).json).toMatchObject({ id, image: "alpine:3.19" });
    expect([templateOf(id), isThere(own)]).toEqual([templateId, true]);
    await http.call("DELETE", `/v2/serverless/${id}`);
    expect([isThere(own), isThere(templateId)]).toEqual([false, true]);
  });

  it("must be the caller's own or a public one, and something must give the image", async () => {
    for (const body of [{ templateId: "unknown" }, { templateId: "unknown", disk: 3 }])
      expect([(await from(body)).status, (await from(body)).text]).toEqual([400, expect.stringContaining("'unknown'")]);
    const { status, json } = await from({});
    expect([status, json.detail]).toEqual([422, "The body must have required property 'image'."]);
  });
});

it.each(["QUEUE_DELAY", "REQUEST_COUNT"])(
  "A load-balanced endpoint may use %s over every interface",
  async (scaler) => {
    const value = scaler === "QUEUE_DELAY" ? { queueDelay: 7 } : { requestCount: 7 };
    const made = await create({ type: "LOAD_BALANCER", scaling: { type: scaler, ...value } });
    const template = await scene.template({ imageName: "alpine:3" });
    const flat = { name: "lb", templateId: template.id, type: "LB", scalerType: scaler, scalerValue: 7 };
    const v1 = await http.post("/v1/endpoints", flat);
    const query = "mutation ($input: EndpointInput!) { saveEndpoint(input: $input) { id } }";
    const graphql = await http.post("/graphql", { query, variables: { input: { ...flat, gpuIds: "ADA_24" } } });
    for (const id of [made.id, v1.json.id, graphql.json.data?.saveEndpoint.id])
      expect((await http.get(`/v2/serverless/${id}`)).json).toMatchObject({
        type: "LOAD_BALANCER",
        scaling: { type: scaler, ...value },
      });
  },
);

it("A queue endpoint that scales by its requests has an idle timeout, too", async () => {
  const scaling = { type: "REQUEST_COUNT", requestCount: 2 };
  const workers = { min: 0, max: 2, idleTimeout: 30 };
  expect(await create({ scaling, workers })).toMatchObject({ scaling, workers });
});

it("Fields that no schema names are named in a header, at every depth", async () => {
  const gpu = { pools: ["ADA_24"], minRamPerGpu: 8 };
  const scaling = { ...queue.scaling, factor: 2 };
  const { status, headers } = await http.post("/v2/serverless", { ...queue, gpu, scaling, startSsh: true });
  const ignored = headers.get("x-millrace-ignored");
  expect([status, ignored?.split(", ").sort()]).toEqual([201, ["gpu.minRamPerGpu", "scaling.factor", "startSsh"]]);
});

describe("An error of REST v2", () => {
  it.each([
    ["a field of another type", { ...queue, workers: { max: "3" } }, 422, /workers\.max/],
    ["a fraction of a second", { ...queue, scaling: { type: "QUEUE_DELAY", queueDelay: 0.5 } }, 422, /scaling/],
    ["a missing image", { ...queue, image: undefined }, 422, /image/],
    ["an unknown pool", { ...queue, gpu: { pools: ["ADA_25"] } }, 422, /pools/],
    ["GPUs beside CPUs", { ...queue, gpu: { pools: ["ADA_24"] }, cpu: { id: "cpu3g", vcpuCount: 2 } }, 400, /either/],
  ])("for %s has RFC 9457's form, and says where", async (_, body, status, detail) => {
    const refused = await http.post("/v2/serverless", body);
    expect(refused.headers.get("content-type")).toMatch(/^application\/problem\+json/);
    expect(refused.json).toMatchObject({ status, title: expect.any(String), detail: expect.stringMatching(detail) });
    expect([refused.status, refused.json.errors]).toEqual([status, [refused.json.detail]]);
  });

  it("is 401 without a valid key, and 403 for a valid one that may not", async () => {
    const missing = await http.get("/v2/serverless", { key: null });
    expect([missing.status, missing.headers.get("www-authenticate")]).toEqual([401, "Bearer"]);
    await scene.addKey("mr_reads", scene.admin.ownerNo, { kind: "readOnly" });
    const refused = await http.post("/v2/serverless", queue, { key: "mr_reads" });
    expect([refused.status, refused.json.title]).toEqual([403, "Forbidden"]);
    expect((await http.get("/v2/serverless", { key: "mr_reads" })).status).toBe(200);
    expect((await http.post("/v1/templates", { name: "t", imageName: "alpine:3" }, { key: "mr_reads" })).status).toBe(
      401,
    );
  });

  it("leaves the queue API's addresses below the same prefix as they were", async () => {
    const endpoint = await scene.endpoint({ workersMax: 0 });
    expect((await http.post(`/v2/${endpoint.id}/run`, { input: {} })).json.status).toBe("IN_QUEUE");
    expect((await http.post("/v2/serverless/run", { input: {} })).status).toBe(405); // no endpoint has this id
  });
});
