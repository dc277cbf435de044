import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { call, makeEndpoint, startServer, type TestServer, until } from "../harness.js";
import { endWith, makeFolder, makeHandler } from "./handlers.js";
import { makePuppets } from "./puppet.js";
import { idPattern, makeBare, makeTemplate, makeVolume, uniqueName, unknownId } from "./resources.js";
import { type Body, expectRefusal, healthOf, textCall } from "./wire.js";

let server: TestServer;
beforeAll(async () => {
  server = await startServer();
});
afterAll(() => server?.end());

const rest = (method: string, path: string, body?: unknown) => call(server, method, `/v1${path}`, body);

describe.concurrent("/v1/templates", () => {
  it("are made with the defaults of the public description", async (test) => {
    const imageName = makeHandler(test);
    const name = uniqueName();
    const { status, body } = await rest("POST", "/templates", { name, imageName });
    expect(status).toBe(200);
    expect(body).toMatchObject({
      id: expect.stringMatching(idPattern),
      name,
      imageName,
      category: "NVIDIA",
      containerDiskInGb: 50,
      dockerEntrypoint: [],
      dockerStartCmd: [],
      env: {},
      isPublic: false,
      isRunpod: false,
      isServerless: false,
      ports: ["8888/http", "22/tcp"],
      readme: "",
      volumeInGb: 20,
      volumeMountPath: "/workspace",
    });
    expect((await rest("GET", `/templates/${body.id}`)).body).toEqual(body);
  });

  it("return everything that was sent unchanged", async (test) => {
    const sent = {
      category: "CPU",
      containerDiskInGb: 10,
      dockerEntrypoint: ["/bin/sh", "-c"],
      dockerStartCmd: ["node", "z", "a", "z"],
      env: { B: "2", A: "1", __proto__x: "3" },
      isServerless: true,
      ports: ["9000/tcp", "80/http"],
      readme: "# Hello",
      volumeInGb: 0,
      volumeMountPath: "/data",
    };
    const made = await makeTemplate(test, server, sent);
    expect(made).toMatchObject(sent);
    const list = await rest("GET", "/templates?includeEndpointBoundTemplates=true");
    expect(list.status).toBe(200);
    expect(list.body.find((one: Body) => one.id === made.id)).toEqual(made);
  });

  it.for(["PATCH", "POST"])("change by %s only in the fields sent, without applying defaults", async (method, test) => {
    const made = await makeTemplate(test, server, {
      env: { A: "1" },
      ports: ["80/http"],
      readme: "text",
      volumeInGb: 1,
    });
    const path = `/templates/${made.id}${method === "POST" ? "/update" : ""}`;
    const name = uniqueName();
    const changed = await rest(method, path, { name });
    expect([changed.status, changed.body]).toEqual([200, { ...made, name }]);
    expect((await rest("GET", `/templates/${made.id}`)).body).toEqual(changed.body);
    expect((await rest(method, path, { env: { B: "2" } })).body).toEqual({ ...changed.body, env: { B: "2" } });
    expect((await rest(method, path, {})).body.env).toEqual({ B: "2" });
  });

  it("are refused without a name or an image, or with fields of the wrong kind", async (test) => {
    const imageName = makeHandler(test);
    expectRefusal(await rest("POST", "/templates", { imageName }), 400, /name/);
    expectRefusal(await rest("POST", "/templates", { name: uniqueName() }), 400, /imageName/);
    expectRefusal(await rest("POST", "/templates", { name: uniqueName(), imageName, env: "A=1" }), 400, /env/);
    expectRefusal(await rest("POST", "/templates", { name: uniqueName(), imageName, ports: "80" }), 400, /ports/);
    expectRefusal(await rest("POST", "/templates", "{not json"), 400);
    const missing = { name: uniqueName(), imageName: join(imageName, "missing") };
    expectRefusal(await rest("POST", "/templates", missing), 400, /director|folder/i);
    const file = { name: uniqueName(), imageName: join(imageName, "handler.mjs") };
    expectRefusal(await rest("POST", "/templates", file), 400, /director|folder/i);
    const empty = { name: uniqueName(), imageName: makeFolder(test) };
    expectRefusal(await rest("POST", "/templates", empty), 400, /no handler.*put one there, or say in dockerStartCmd/);
  });

  it("store a relative path as an absolute one", async (test) => {
    const made = await makeTemplate(test, server, { imageName: "./examples/hello" });
    expect(made.imageName).toMatch(/^(file:\/\/)?\/.*\/examples\/hello$/);
  });

  it("can be deleted once no endpoint uses them", async (test) => {
    const endpoint = await makeBare(test, server);
    expectRefusal(await rest("DELETE", `/templates/${endpoint.templateId}`), 400);
    expect((await rest("GET", `/templates/${endpoint.templateId}`)).status).toBe(200);
    expect((await call(server, "DELETE", `/sdk/v1/endpoints/${endpoint.id}`)).status).toBe(204);
    const gone = await textCall(server, "DELETE", `/v1/templates/${endpoint.templateId}`);
    expect([gone.status, gone.text]).toEqual([204, ""]);
    expectRefusal(await rest("GET", `/templates/${endpoint.templateId}`), 404);
    expect([400, 404]).toContain((await rest("DELETE", `/templates/${endpoint.templateId}`)).status);
  });
});

it.for(["/endpoints", "/templates", "/networkvolumes"])(
  "/v1%s is a bare array, and 401 without a key",
  async (path) => {
    const refused = await call(server, "GET", `/v1${path}`, undefined, { authorization: "Bearer wrong" });
    expectRefusal(refused, 401);
    const own = await rest("GET", path);
    expect(own.status).toBe(200);
    expect(Array.isArray(own.body)).toBe(true);
  },
);

describe.concurrent("/v1/networkvolumes", () => {
  it("are made, shown, changed and deleted", async () => {
    const sent = { name: "models", size: 50, dataCenterId: "EU-RO-1" };
    const made = await makeVolume(server, sent);
    expect(made).toEqual({ id: expect.stringMatching(idPattern), ...sent, sizeEnforced: expect.any(Boolean) });
    expect((await rest("GET", `/networkvolumes/${made.id}`)).body).toEqual(made);
    expect((await rest("GET", "/networkvolumes")).body).toContainEqual(made);
    const renamed = await rest("PATCH", `/networkvolumes/${made.id}`, { name: "weights" });
    expect(renamed.body).toEqual({ ...made, name: "weights" });
    const grown = await rest("POST", `/networkvolumes/${made.id}/update`, { size: 60 });
    expect(grown.body).toEqual({ ...made, name: "weights", size: 60 });
    const gone = await textCall(server, "DELETE", `/v1/networkvolumes/${made.id}`);
    expect([gone.status, gone.text]).toEqual([204, ""]);
    expectRefusal(await rest("GET", `/networkvolumes/${made.id}`), 404);
  });

  it("are refused out of bounds", async () => {
    const whole = { name: "v", size: 1, dataCenterId: "EU-RO-1" };
    for (const [field, value] of [
      ["size", -1],
      ["size", 4_001],
      ["size", "1"],
      ["name", undefined],
      ["dataCenterId", undefined],
    ] as const) {
      expectRefusal(await rest("POST", "/networkvolumes", { ...whole, [field]: value }), 400, new RegExp(field));
    }
  });

  it("are 400 to delete if the id is unknown, malformed or already deleted, and 401 without a key", async () => {
    for (const id of [unknownId, "!", "x".repeat(500), "%20"]) {
      expectRefusal(await rest("DELETE", `/networkvolumes/${id}`), 400);
    }
    const { id } = await makeVolume(server);
    const headers = { authorization: "Bearer wrong" };
    expectRefusal(await call(server, "DELETE", `/v1/networkvolumes/${id}`, undefined, headers), 401);
    expect((await rest("DELETE", `/networkvolumes/${id}`)).status).toBe(204);
    expectRefusal(await rest("DELETE", `/networkvolumes/${id}`), 400);
  });

  it("cannot be deleted while an endpoint uses them, and can afterwards", async (test) => {
    const volume = await makeVolume(server);
    const endpoint = await makeBare(test, server, { networkVolumeId: volume.id });
    expect(endpoint.networkVolumeId).toBe(volume.id);
    expectRefusal(await rest("DELETE", `/networkvolumes/${volume.id}`), 400);
    const freed = await rest("PATCH", `/endpoints/${endpoint.id}`, { networkVolumeId: "" });
    expect(freed.body).not.toHaveProperty("networkVolumeId");
    expect((await rest("DELETE", `/networkvolumes/${volume.id}`)).status).toBe(204);
    const missing = { networkVolumeId: volume.id };
    expectRefusal(await rest("PATCH", `/endpoints/${endpoint.id}`, missing), 400, /networkVolumeId|volume/);
  });

  it("are available to local workers, and keep what was written", async (test) => {
    const volume = await makeVolume(server);
    const source = `
      import { appendFileSync, readFileSync } from "node:fs";
      export default async () => {
        const file = process.env.RUNPOD_VOLUME_PATH + "/kept";
        appendFileSync(file, "x");
        return { length: readFileSync(file, "utf8").length, volume: process.env.RUNPOD_VOLUME_ID };
      };`;
    for (const length of [1, 2]) {
      const endpoint = await makeEndpoint(server, makeHandler(test, source), { networkVolumeId: volume.id });
      endWith(test, server, endpoint);
      const { body } = await call(server, "POST", `/v2/${endpoint}/runsync`, { input: {} });
      expect(body.output).toEqual({ length, volume: volume.id });
    }
  });
});

describe.concurrent("operations", () => {
  it("say that the server is alive and ready, without a key", async () => {
    for (const path of ["/healthz", "/readyz"]) {
      const reply = await fetch(server.url + path);
      expect(reply.status, path).toBe(200);
      await reply.arrayBuffer();
    }
  });

  it("show metrics in the Prometheus text format", async (test) => {
    const endpoint = await makeBare(test, server);
    await call(server, "POST", `/v2/${endpoint.id}/runsync`, { input: {} });
    const reply = await fetch(`${server.url}/metrics`, { headers: { authorization: `Bearer ${server.key}` } });
    const text = await reply.text();
    expect(reply.status).toBe(200);
    expect(reply.headers.get("content-type")).toMatch(/^text\/plain/);
    const samples = text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
    expect(samples.length).toBeGreaterThan(10);
    for (const line of samples) expect(line).toMatch(/^[a-zA-Z_:][\w:]*(\{.*\})? \S+( \d+)?$/);
    expect(samples.some((line) => line.startsWith("millrace_"))).toBe(true);
    expect(text).not.toContain(server.key);
  });

  it("describe both APIs", async () => {
    for (const [path, routes] of [
      ["/v1/openapi.json", ["/endpoints", "/templates", "/networkvolumes/{networkVolumeId}"]],
      ["/v2/openapi.json", ["run", "runsync", "status", "cancel", "retry", "purge-queue", "health", "stream"]],
    ] as const) {
      const reply = await fetch(server.url + path);
      expect(reply.status, path).toBe(200);
      const document = (await reply.json()) as Body;
      expect(document.openapi).toMatch(/^3\./);
      const paths = Object.keys(document.paths).join("\n");
      for (const route of routes) expect(paths, path).toContain(route);
    }
  });
});

it("a worker's environment is its endpoint's and its template's, and null clears", async (test) => {
  const { id, puppet } = await makePuppets(test, server, {}, { FROM_TEMPLATE: "1" });
  expect((await puppet()).env.FROM_TEMPLATE).toBe("1");
  const { templateId } = (await rest("GET", `/endpoints/${id}`)).body;
  const cleared = await rest("PATCH", `/templates/${templateId}`, { readme: null, containerRegistryAuthId: null });
  expect(cleared.status).toBe(200);
  expect(cleared.body.env.FROM_TEMPLATE).toBe("1");
  await until(async () => (await healthOf(server, id)).workers.initializing === 1);
});
