import * as api from "@millrace/api";
import type { TSchema } from "typebox";
import Type from "typebox";
import { Errors } from "typebox/value";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Answer, type Http, openHttp } from "../../testing/http-fixture.js";
import { Scene } from "../../testing/scene-fixture.js";

let scene: Scene;
let http: Http;
let templateId: string;
beforeAll(async () => {
  scene = await Scene.open();
  http = await openHttp(scene);
  templateId = (await http.post("/v1/templates", { name: "first", imageName: scene.directory })).json.id;
});
afterAll(async () => {
  await http.close();
  await scene.close();
});

function expectShape(answer: Answer, schema: TSchema): void {
  expect([answer.status, answer.text]).toEqual([200, answer.text]);
  expect([...Errors(schema, answer.json)]).toEqual([]);
}
const create = async (more: object = {}) => (await http.post("/v1/endpoints", { templateId, ...more })).json;
const patch = (path: string, body: unknown) => http.call("PATCH", path, { body });

describe("Fields that a body may not have", () => {
  const ignored = async (path: string, body: object) => {
    const { status, headers } = await http.post(path, body);
    expect(status).toBe(200);
    return headers.get("x-millrace-ignored");
  };
  const imageName = "alpine:3";

  it("are ignored, and named in a header", async () => {
    const body = {
      name: "ignored 1",
      imageName,
      dockerStartCommand: ["x"],
      "a b\nc, é": 1,
      __proto__: { readme: "x" },
    };
    expect(await ignored("/v1/templates", { ...body })).toBe("dockerStartCommand, a%20b%0Ac%2C%20%C3%A9");
    expect(await ignored("/v1/templates", { name: "ignored 2", imageName })).toBeNull();
    expect(await ignored("/v1/networkvolumes", { name: "v", size: 1, dataCenterId: "EU-RO-1", id: "x" })).toBe("id");
    const named = '{"name":"ignored 3","imageName":"alpine:3","__proto__":{"readme":"x"},"constructor":1}';
    const { json, headers } = await http.post("/v1/templates", named);
    expect([json.readme, headers.get("x-millrace-ignored")]).toEqual(["", "__proto__, constructor"]);
  });

  it("are named only in part if there are very many", async () => {
    const many = Object.fromEntries(Array.from({ length: 4_000 }, (_, n) => [`field ${n} ${"x".repeat(30)}`, n]));
    const names = await ignored("/v1/templates", { name: "ignored 4", imageName, ...many });
    expect(names).toMatch(/^field%200%20x+, .*, and 3980 more$/);
    expect(names?.length).toBeLessThan(2_000);
  });
});

describe("Endpoints over REST", () => {
  it("are made, shown, changed in two ways, listed and deleted", async () => {
    const made = await http.post("/v1/endpoints", { templateId, name: "e", workersMax: 0, env: { A: "1" } });
    expectShape(made, api.Endpoint);
    const path = `/v1/endpoints/${made.json.id}`;
    expect((await http.get(path)).json).toEqual(made.json);
    const patched = await patch(path, { idleTimeout: 9 });
    expectShape(patched, api.Endpoint);
    expect(patched.json).toEqual({ ...made.json, idleTimeout: 9 });
    const updated = await http.post(`${path}/update`, { idleTimeout: null });
    expect(updated.json).toEqual({ ...made.json, idleTimeout: 5 });
    expectShape(await http.get("/v1/endpoints"), Type.Array(api.Endpoint));
    const removed = await http.call("DELETE", path);
    expect([removed.status, removed.text]).toEqual([204, ""]);
    expect((await http.get(path)).json.code).toBe("ENDPOINT_NOT_FOUND");
    expect((await http.get(`/v2/${made.json.id}/health`)).json.code).toBe("ENDPOINT_NOT_FOUND");
    expect((await http.call("DELETE", path)).status).toBe(404);
  });

  it("are shown with their template and workers on request", async () => {
    const { id } = await create();
    await scene.worker(scene.parts.registry.endpoint(id)!);
    const plain = (await http.get(`/v1/endpoints/${id}`)).json;
    expect("template" in plain || "workers" in plain).toBe(false);
    const full = await http.get(`/v1/endpoints/${id}?includeTemplate=true&includeWorkers=true`);
    expectShape(full, api.Endpoint);
    expect([full.json.template.id, full.json.workers[0].state]).toEqual([templateId, "initializing"]);
  });

  it("are deleted under /sdk even if their workers are not 0", async () => {
    const { id } = await create({ workersMax: 3 });
    expect((await http.call("DELETE", `/v1/endpoints/${id}`)).json.code).toBe("IN_USE");
    expect((await http.call("DELETE", `/sdk/v1/endpoints/${id}`)).status).toBe(204);
  });

  it.each([
    [{ workersMax: "3" }],
    [{ workersMax: -1 }],
    [{ workersMax: 1.5 }],
    [{ idleTimeout: 0 }],
    [{ idleTimeout: 3_601 }],
    [{ scalerType: "FAST" }],
    [{ gpuCount: 0 }],
    [{ env: { A: 1 } }],
    [{ env: [] }],
    [{ name: "x".repeat(192) }],
    [{ flashboot: "yes" }],
    [{ dataCenterIds: "here" }],
    [{ templateId: 7 }],
    [{ computeType: "TPU" }],
    [{ computeType: 42 }],
  ])("are neither made nor changed with %j", async (body) => {
    const { id } = await create();
    const before = (await http.get(`/v1/endpoints/${id}`)).json;
    expect((await http.post("/v1/endpoints", { templateId, ...body })).status).toBe(400);
    const changed = await patch(`/v1/endpoints/${id}`, body);
    // An update ignores fields that it does not have.
    expect([200, 400]).toContain(changed.status);
    const after = await http.get(`/v1/endpoints/${id}`);
    expectShape(after, api.Endpoint);
    expect(after.json).toEqual(before);
  });

  it("treat names that are special in JavaScript as data", async () => {
    const { id } = await create();
    const body = '{"__proto__":{"workersMax":1},"constructor":1,"env":{"__proto__x":"1","constructor":"2"}}';
    const changed = await http.call("PATCH", `/v1/endpoints/${id}`, { body });
    expect(changed.json).toMatchObject({ workersMax: 3, env: { __proto__x: "1", constructor: "2" } });
    expect(({} as Record<string, unknown>).workersMax).toBeUndefined();
  });

  it("show why they did or did not scale", async () => {
    const { id } = await create();
    scene.run(scene.loops.scale());
    await scene.advance(100);
    const answer = await http.get(`/v1/endpoints/${id}/scaling`);
    expectShape(answer, Type.Array(api.ScalingDecision));
    expect(answer.json).toHaveLength(1);
  });
});

describe("A value that its field does not accept", () => {
  it.each([
    [
      { executionTimeoutMs: 1_000 },
      "'executionTimeoutMs' must be a whole number of milliseconds from 5000 to 604800000, or 0 for the default.",
    ],
    [
      { executionTimeoutMs: "long" },
      "'executionTimeoutMs' must be a whole number of milliseconds from 5000 to 604800000, or 0 for the default.",
    ],
    [{ scalerType: "FAST" }, "'scalerType' must be one of QUEUE_DELAY, REQUEST_COUNT."],
    [{ flashBootType: "FAST" }, "'flashBootType' must be one of OFF, FLASHBOOT, PRIORITY_FLASHBOOT."],
    [{ allowedCudaVersions: ["12.4", "9.9"] }, /^'allowedCudaVersions.1' must be one of 13\.0, .*, 11\.8\.$/],
    [{ cpuFlavorIds: ["cpu9x"] }, "'cpuFlavorIds.0' must be one of cpu3c, cpu3g, cpu3m, cpu5c, cpu5g, cpu5m."],
    [{ dataCenterIds: ["MARS-1"] }, /^'dataCenterIds.0' must be one of EU-RO-1, /],
    [{ instanceIds: ["cpu3g-0-8"] }, "'instanceIds.0' must be flavour-vCPUs-GB, as in cpu3g-2-8."],
    [{ computeType: 42 }, "'computeType' must be one of GPU, CPU."],
    [{ idleTimeout: 0 }, "'idleTimeout' must be >= 1."],
    [
      { env: { "9": "x" } },
      "'env' must be variables whose names begin with a letter or _ and go on with letters, digits, _, . and -.",
    ],
    [{ env: { A: "\u0000" } }, "'env.A' must be text of at most 131072 characters without NUL."],
  ])("is refused with the rule: %j", async (body, sentence) => {
    const { id: templateId } = await scene.template();
    const { status, json } = await http.post("/v1/endpoints", { templateId, ...body });
    expect([status, json.error]).toEqual([
      400,
      typeof sentence === "string" ? sentence : expect.stringMatching(sentence),
    ]);
  });
});

describe("Templates over REST", () => {
  it("are made, shown, changed in two ways, listed and deleted", async () => {
    const made = await http.post("/v1/templates", { name: "t", imageName: "registry.example/image", env: { A: "1" } });
    expectShape(made, api.Template);
    const path = `/v1/templates/${made.json.id}`;
    expect((await http.get(path)).json).toEqual(made.json);
    expect((await patch(path, { readme: "hello" })).json).toEqual({ ...made.json, readme: "hello" });
    expect((await http.post(`${path}/update`, { readme: null })).json).toEqual(made.json);
    expectShape(await http.get("/v1/templates"), Type.Array(api.Template));
    expect((await http.call("DELETE", path)).status).toBe(204);
    expect((await http.get(path)).status).toBe(404);
    expect((await http.call("DELETE", `/v1/templates/${templateId}`)).json.code).toBe("IN_USE");
  });

  it.each([
    [{}],
    [{ name: "x" }],
    [{ imageName: "registry.example/image" }],
    [{ name: "", imageName: "i" }],
    [{ name: "x", imageName: "" }],
    [{ name: "x", imageName: "i", ports: "80/http" }],
    [{ name: "x", imageName: "i", category: "TPU" }],
    [[]],
    ["text"],
  ])("are not made of %j", async (body) => {
    expect((await http.post("/v1/templates", JSON.stringify(body))).status).toBe(400);
  });

  it("have ports from 1 to 65535, with http or tcp", async () => {
    const post = (port: string) =>
      http.post("/v1/templates", { name: `with ${port.trim()}`, imageName: "i", ports: ["22/tcp", port] });
    for (const port of ["1/http", "9999/tcp", "10000/http", "65535/tcp"]) expect((await post(port)).status).toBe(200);
    for (const port of ["80", "0/tcp", "08/tcp", "65536/tcp", "99999/tcp", "80/udp", "80/http\n"]) {
      const { status, json } = await post(port);
      expect([status, json.error]).toEqual([400, "'ports.1' must be number/http or number/tcp, as in 8888/http."]);
    }
  });
});

describe("Network volumes over REST", () => {
  it("are made, shown, changed in two ways, listed and deleted", async () => {
    const made = await http.post("/v1/networkvolumes", { name: "v", size: 1, dataCenterId: "here", more: 1 });
    expectShape(made, api.Volume);
    const path = `/v1/networkvolumes/${made.json.id}`;
    expect((await http.get(path)).json).toEqual(made.json);
    expect((await patch(path, { size: 2 })).json).toEqual({ ...made.json, size: 2 });
    expect((await http.post(`${path}/update`, { name: "w" })).json).toEqual({ ...made.json, size: 2, name: "w" });
    expect((await patch(path, { size: 1 })).status).toBe(400);
    expectShape(await http.get("/v1/networkvolumes"), Type.Array(api.Volume));
    expect((await http.call("DELETE", path)).status).toBe(204);
    expect((await http.call("DELETE", path)).status).toBe(400);
    expect((await http.call("DELETE", "/v1/networkvolumes/..%2F..%2Fetc")).status).toBe(400);
  });

  it("are not deleted while an endpoint uses them: 400, and they are still there", async () => {
    const { id } = (await http.post("/v1/networkvolumes", { name: "v", size: 1, dataCenterId: "here" })).json;
    const endpoint = await create({ networkVolumeId: id, workersMax: 0 });
    const refused = await http.call("DELETE", `/v1/networkvolumes/${id}`);
    expect([refused.status, refused.json.code, refused.json.error]).toEqual([
      400,
      "IN_USE",
      expect.stringContaining(endpoint.id),
    ]);
    expect((await http.get(`/v1/networkvolumes/${id}`)).status).toBe(200);
    await patch(`/v1/endpoints/${endpoint.id}`, { networkVolumeId: null });
    expect((await http.call("DELETE", `/v1/networkvolumes/${id}`)).status).toBe(204);
  });

  it("are shown with their size when they were last measured", async () => {
    const { id } = (await http.post("/v1/networkvolumes", { name: "v", size: 1, dataCenterId: "here" })).json;
    scene.parts.here.volumes.use.set(id, { bytes: 2 ** 31, at: 1_790_000_000_000, isWhole: false });
    const shown = await http.get(`/v1/networkvolumes/${id}`);
    expectShape(shown, api.Volume);
    const usedAt = "2026-09-21T14:13:20.000Z";
    expect(shown.json).toMatchObject({ usedBytes: 2 ** 31, usedAt, usedAtLeast: true, sizePassed: true });
    const listed = (await http.get("/v1/networkvolumes")).json;
    expect(listed.find((each: { id: string }) => each.id === id)).toEqual(shown.json);
  });
});

describe("Container registry auths over REST", () => {
  const path = "/v1/containerregistryauth";
  const given = { name: "my creds", username: "my-username", password: "my-password" };

  it("are made, shown without user and password, listed and deleted", async () => {
    const made = await http.post(path, { ...given, more: 1 });
    expectShape(made, api.RegistryAuth);
    expect(made.json).toEqual({ id: expect.stringMatching(/^[a-z0-9]{14}$/), name: "my creds" });
    expect((await http.get(`${path}/${made.json.id}`)).json).toEqual(made.json);
    expect((await http.get(path)).json).toEqual([made.json]);
    const template = { name: "private", imageName: "registry.example/a", containerRegistryAuthId: made.json.id };
    const { json } = await http.post("/v1/templates", template);
    expect(json.containerRegistryAuthId).toBe(made.json.id);
    expect((await http.call("DELETE", `${path}/${made.json.id}`)).json).toMatchObject({ code: "IN_USE" });
    await http.call("DELETE", `/v1/templates/${json.id}`);
    const removed = await http.call("DELETE", `${path}/${made.json.id}`);
    expect([removed.status, removed.text]).toEqual([204, ""]);
    expect((await http.get(`${path}/${made.json.id}`)).status).toBe(404);
  });

  it.each(["name", "username", "password"])(
    "are not made without %s, or with one that is not a text",
    async (field) => {
      for (const value of [undefined, null, "", 1]) {
        expect((await http.post(path, { ...given, [field]: value })).status).toBe(400);
      }
    },
  );
});
