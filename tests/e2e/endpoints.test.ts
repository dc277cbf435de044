import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { call, startServer, type TestServer } from "../harness.js";
import { endWith } from "./handlers.js";
import { makePuppets } from "./puppet.js";
import { idPattern, makeBare, makeTemplate, unknownId } from "./resources.js";
import { type Body, expectRefusal, reach, submit, textCall } from "./wire.js";

let server: TestServer;
beforeAll(async () => {
  server = await startServer();
});
afterAll(() => server?.end());

const rest = (method: string, path: string, body?: unknown) => call(server, method, `/v1${path}`, body);

describe.concurrent("/v1/endpoints", () => {
  it("are made with the defaults, and answered 200", async (test) => {
    const template = await makeTemplate(test, server);
    const { status, body } = await rest("POST", "/endpoints", { name: "mine", templateId: template.id });
    expect(status).toBe(200);
    endWith(test, server, body.id);
    expect(body).toMatchObject({
      id: expect.stringMatching(idPattern),
      name: "mine",
      templateId: template.id,
      type: "QB",
      computeType: "GPU",
      executionTimeoutMs: 600_000,
      flashBootType: "OFF",
      gpuCount: 1,
      idleTimeout: 5,
      scalerType: "QUEUE_DELAY",
      scalerValue: 4,
      workersMin: 0,
      workersMax: 3,
      env: {},
    });
    expect(Number.isInteger(body.version)).toBe(true);
    expect(Math.abs(Date.parse(body.createdAt) - Date.now())).toBeLessThan(60_000);
    expect(Object.values(body)).not.toContain(null);
  });

  it("return everything that was sent unchanged", async (test) => {
    const sent = {
      name: "as sent",
      gpuTypeIds: ["NVIDIA L4", "NVIDIA A40", "NVIDIA RTX A4000"],
      dataCenterIds: ["US-TX-3", "EU-RO-1"],
      executionTimeoutMs: 5_000,
      flashboot: true,
      idleTimeout: 3_600,
      scalerType: "REQUEST_COUNT",
      scalerValue: 9,
      workersMin: 0,
      workersMax: 0,
    };
    const made = await makeBare(test, server, sent);
    expect(made).toMatchObject({ ...sent, flashBootType: "FLASHBOOT" });
    expect((await rest("GET", `/endpoints/${made.id}`)).body).toEqual(made);
    const list = await rest("GET", "/endpoints");
    expect(list.body.find((one: Body) => one.id === made.id)).toEqual(made);
  });

  it("show their template and workers only when asked", async (test) => {
    const { id, puppet } = await makePuppets(test, server);
    const worker = await puppet();
    const plain = (await rest("GET", `/endpoints/${id}`)).body;
    expect(plain).not.toHaveProperty("template");
    expect(plain).not.toHaveProperty("workers");
    const full = (await rest("GET", `/endpoints/${id}?includeTemplate=true&includeWorkers=true`)).body;
    expect(full.template).toMatchObject({ id: plain.templateId });
    expect(full.workers).toEqual([expect.objectContaining({ id: worker.id, desiredStatus: "RUNNING" })]);
    const list = (await rest("GET", "/endpoints?includeWorkers=true")).body;
    expect(list.find((one: Body) => one.id === id).workers).toHaveLength(1);
  });

  it.for(["PATCH", "POST"])("change by %s only in the fields sent, without applying defaults", async (method, test) => {
    const fields = { idleTimeout: 7, scalerValue: 9, workersMax: 2, flashboot: true, gpuTypeIds: ["NVIDIA L4"] };
    const made = await makeBare(test, server, { ...fields, executionTimeoutMs: 9_000, dataCenterIds: ["EU-RO-1"] });
    const path = `/endpoints/${made.id}${method === "POST" ? "/update" : ""}`;
    const { status, body } = await rest(method, path, { name: "renamed" });
    expect(status).toBe(200);
    expect({ ...body, version: made.version }).toEqual({ ...made, name: "renamed" });
    expect((await rest(method, path, { workersMax: 5 })).body).toMatchObject({ ...fields, workersMax: 5 });
  });

  it("are refused with fields out of bounds, naming them, and stay as they were", async (test) => {
    const made = await makeBare(test, server);
    for (const [field, value] of [
      ["idleTimeout", 0],
      ["idleTimeout", 3_601],
      ["scalerValue", 0],
      ["scalerType", "MAGIC"],
      ["workersMin", -1],
      ["workersMax", 1.5],
      ["workersMax", "3"],
      ["gpuCount", 0],
      ["gpuTypeIds", "NVIDIA L4"],
      ["gpuTypeIds", ["NVIDIA POTATO"]],
      ["name", "x".repeat(192)],
      ["templateId", unknownId],
    ] as const) {
      const words = new RegExp(field.replace("templateId", "template"), "i");
      expectRefusal(await rest("PATCH", `/endpoints/${made.id}`, { [field]: value }), 400, words);
      const { templateId } = made;
      expectRefusal(await rest("POST", "/endpoints", { templateId, [field]: value }), 400, words);
    }
    expectRefusal(await rest("POST", "/endpoints", { name: "no template" }), 400, /templateId/);
    expect((await rest("GET", `/endpoints/${made.id}`)).body).toEqual(made);
  });

  it("are deleted only when workersMin and workersMax are 0", async (test) => {
    const made = await makeBare(test, server);
    expectRefusal(await rest("DELETE", `/endpoints/${made.id}`), 400, /workersM/);
    await rest("PATCH", `/endpoints/${made.id}`, { workersMax: 1, workersMin: 1 });
    expectRefusal(await rest("DELETE", `/endpoints/${made.id}`), 400, /workersM/);
    expect((await rest("GET", `/endpoints/${made.id}`)).status).toBe(200);
    await rest("PATCH", `/endpoints/${made.id}`, { workersMax: 0, workersMin: 0 });
    const headers = { "content-type": "application/json" };
    const gone = await textCall(server, "DELETE", `/v1/endpoints/${made.id}`, "", headers);
    expect([gone.status, gone.text]).toEqual([204, ""]);
    expectRefusal(await rest("GET", `/endpoints/${made.id}`), 404);
    expectRefusal(await call(server, "POST", `/v2/${made.id}/run`, { input: {} }), 404);
    expect((await rest("GET", "/endpoints")).body.map((one: Body) => one.id)).not.toContain(made.id);
  });

  it("are deleted completely at the public clients' URL", async (test) => {
    const made = await makeBare(test, server);
    const job = await submit(server, made.id, { gate: "/nonexistent/gate" });
    await reach(server, made.id, job, "IN_PROGRESS");
    const gone = await textCall(server, "DELETE", `/sdk/v1/endpoints/${made.id}`);
    expect([gone.status, gone.text]).toEqual([204, ""]);
    expectRefusal(await rest("GET", `/endpoints/${made.id}`), 404);
    expectRefusal(await call(server, "GET", `/v2/${made.id}/status/${job}`), 404);
  });

  it("are 404 if they are unknown", async () => {
    expectRefusal(await rest("GET", `/endpoints/${unknownId}`), 404);
    expect([400, 404]).toContain((await rest("PATCH", `/endpoints/${unknownId}`, { name: "x" })).status);
    expect([400, 404]).toContain((await rest("DELETE", `/endpoints/${unknownId}`)).status);
  });
});
