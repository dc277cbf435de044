import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Json, PodScene } from "../../operations/pods/pods-fixture.js";

let pods: PodScene;
beforeEach(async () => {
  pods = await PodScene.open();
});
afterEach(() => pods.close());

const create = (body: object) => pods.http.post("/v2/pods", { name: "mine", image: "alpine:3", ...body });
const gpu = { gpu: { id: "NVIDIA L4" } };
async function made(body: object): Promise<Json> {
  const { status, json, text } = await create(body);
  expect(status, text).toBe(201);
  return json;
}
const act = (id: string, action: string) => pods.http.post(`/v2/pods/${id}/action`, { action });
const problem = async (asked: ReturnType<typeof create>, status: number, detail: RegExp) => {
  const { json, ...reply } = await asked;
  expect([reply.status, json?.detail], reply.text).toEqual([status, expect.stringMatching(detail)]);
  expect(reply.headers.get("content-type")).toContain("application/problem+json");
};

describe("A pod of REST v2", () => {
  it("has the nested shape, and runs with what it was given", async () => {
    const pod = await made({
      ...gpu,
      args: "sleep 'a b'",
      disk: 7,
      mounts: { persistent: { size: 10, path: "/data" } },
      env: { A: "1" },
      ports: ["8888/http"],
    });
    expect(pod).toMatchObject({
      name: "mine",
      status: "PROVISIONING",
      actions: ["stop", "terminate"],
      image: "alpine:3",
      args: "sleep 'a b'",
      disk: 7,
      mounts: { persistent: { size: 10, path: "/data" } },
      env: { A: "1" },
      ports: ["8888/http"],
      registry: null,
      cloud: "SECURE",
      template: null,
      cost: 0,
      locked: false,
      runtime: null,
      startedAt: null,
      globalNetworking: { enabled: false },
    });
    await pods.passed();
    const { json } = await pods.http.get(`/v2/pods/${pod.id}`);
    expect(json).toMatchObject({
      status: "RUNNING",
      actions: ["stop", "restart", "terminate"],
      gpu: { id: "NVIDIA L4", count: 1 },
      dataCenterId: "CZ",
      runtime: { uptime: 0, ports: [{ private: 8888, public: null, type: "http", ip: null }] },
    });
    expect(pods.launches[0]).toMatchObject({ command: ["sleep", "a b"], diskGb: 7, mounts: [{ target: "/data" }] });
    expect((await pods.http.get("/v2/pods")).json).toEqual({ pods: [json] });
  });

  it("takes the actions that its status allows, and answers others with 409", async () => {
    const { id } = await made(gpu);
    await pods.passed();
    await problem(act(id, "start"), 409, /RUNNING cannot start/);
    expect((await act(id, "stop")).json).toMatchObject({ status: "EXITED", actions: ["start", "terminate"] });
    await pods.stopped(id);
    await problem(act(id, "restart"), 409, /EXITED cannot restart/);
    expect((await act(id, "start")).json).toMatchObject({ status: "PROVISIONING" });
    await pods.passed();
    await pods.http.call("PATCH", `/v2/pods/${id}`, { body: { locked: true } });
    await problem(act(id, "stop"), 409, /locked/);
    await problem(pods.http.call("DELETE", `/v2/pods/${id}`), 409, /locked/);
    await pods.http.call("PATCH", `/v2/pods/${id}`, { body: { locked: false } });
    expect((await act(id, "terminate")).status).toBe(204);
    await problem(pods.http.get(`/v2/pods/${id}`), 404, /no pod/);
    expect((await act(id, "explode")).status).toBe(422);
  });

  it("keeps the kind of its mount", async () => {
    const volume = (await pods.http.post("/v1/networkvolumes", { name: "v", size: 1, dataCenterId: "EU-CZ-1" })).json;
    const network = await made({ ...gpu, mounts: { network: [{ volumeId: volume.id, path: "/v" }] } });
    const change = (id: string, mounts: object) => pods.http.call("PATCH", `/v2/pods/${id}`, { body: { mounts } });
    expect(network.mounts).toEqual({ network: [{ volumeId: volume.id, path: "/v" }] });
    await problem(change(network.id, { network: [] }), 400, /cannot be taken away/);
    await problem(change(network.id, { network: [{ volumeId: "other", path: "/v" }] }), 400, /cannot be changed/);
    await problem(change(network.id, { persistent: { size: 10, path: "/v" } }), 400, /cannot be added/);
    const moved = await change(network.id, { network: [{ volumeId: volume.id, path: "/w" }] });
    expect(moved.json.mounts.network).toEqual([{ volumeId: volume.id, path: "/w" }]);
    const bare = await made(gpu);
    await problem(change(bare.id, { persistent: { size: 10, path: "/v" } }), 400, /cannot be added/);
    expect((await change(bare.id, {})).json.mounts).toEqual({});
  });

  it("is for GPUs or for a CPU, whose pod has no volume of its own", async () => {
    await problem(create({}), 400, /either 'gpu' or 'cpu'/);
    const cpu = { id: "cpu3g", vcpuCount: 2 };
    await problem(create({ ...gpu, cpu }), 400, /either 'gpu' or 'cpu'/);
    await problem(create({ cpu, mounts: { persistent: { size: 10, path: "/v" } } }), 400, /CPU pod has no/);
    expect(await made({ cpu })).toMatchObject({ cpu: { id: "cpu3g", vcpuCount: 2, memory: 8 }, mounts: {} });
  });
});
