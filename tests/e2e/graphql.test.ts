import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { call, startServer, type TestServer } from "../harness.js";
import { type Ending, endWith } from "./handlers.js";
import { makePuppets } from "./puppet.js";
import { idPattern, makeBare, makeTemplate, makeVolume, unknownId } from "./resources.js";
import { type Body, expectRefusal } from "./wire.js";

let server: TestServer;
beforeAll(async () => {
  server = await startServer();
});
afterAll(() => server?.end());

const rest = (method: string, path: string, body?: unknown) => call(server, method, `/v1${path}`, body);

describe.concurrent("GraphQL", () => {
  const graphql = (query: string, variables?: unknown, headers?: Record<string, string>) =>
    call(server, "POST", "/graphql", { query, variables }, { "content-type": "application/json", ...headers });
  const fields = `id name templateId gpuIds type idleTimeout locations flashBootType scalerType scalerValue
    workersMin workersMax networkVolumeId pods { desiredStatus }`;

  async function save(test: Ending, input: string): Promise<Body> {
    const { body } = await graphql(`mutation { saveEndpoint(input: {${input}}) { ${fields} } }`);
    expect(body.errors, JSON.stringify(body)).toBeUndefined();
    endWith(test, server, body.data.saveEndpoint.id);
    return body.data.saveEndpoint;
  }

  it("makes an endpoint with the defaults", async (test) => {
    const { id: templateId } = await makeTemplate(test, server);
    const made = await save(test, `name: "g", templateId: "${templateId}", gpuIds: "AMPERE_16,AMPERE_24"`);
    expect(made).toEqual({
      id: expect.stringMatching(idPattern),
      name: "g",
      templateId,
      gpuIds: "AMPERE_16,AMPERE_24",
      type: "QB",
      idleTimeout: 5,
      locations: made.locations,
      flashBootType: "OFF",
      scalerType: "QUEUE_DELAY",
      scalerValue: 4,
      workersMin: 0,
      workersMax: 3,
      networkVolumeId: null,
      pods: [],
    });
    expect([null, ""]).toContain(made.locations);
    expect((await rest("GET", `/endpoints/${made.id}`)).body).toMatchObject({ name: "g", templateId, workersMax: 3 });
  });

  it("keeps every field of the contract, and changes only the sent fields", async (test) => {
    const { id: templateId } = await makeTemplate(test, server);
    const volume = await makeVolume(server);
    const needed = `name: "g", templateId: "${templateId}", gpuIds: "ADA_24"`;
    const more = `type: "QB", idleTimeout: 9, locations: "CZ,FR", flashBootType: FLASHBOOT, scalerType: "REQUEST_COUNT",
      scalerValue: 7, workersMin: 0, workersMax: 2, networkVolumeId: "${volume.id}"`;
    const made = await save(test, `${needed}, ${more}`);
    expect(made).toMatchObject({
      ...{ idleTimeout: 9, locations: "CZ,FR", flashBootType: "FLASHBOOT", scalerType: "REQUEST_COUNT" },
      ...{ scalerValue: 7, workersMax: 2, networkVolumeId: volume.id },
    });
    const renamed = await save(test, `id: "${made.id}", ${needed.replace('"g"', '"h"')}`);
    expect(renamed).toEqual({ ...made, name: "h" });
    const cleared = await save(test, `id: "${made.id}", ${needed}, locations: "", networkVolumeId: ""`);
    expect(cleared).toMatchObject({ networkVolumeId: null, flashBootType: "FLASHBOOT", idleTimeout: 9 });
    expect([null, ""]).toContain(cleared.locations);
  });

  it("keeps GPU types if the tiers sent are the tiers shown", async (test) => {
    const gpuTypeIds = ["NVIDIA L4", "NVIDIA RTX A5000"];
    const made = await makeBare(test, server, { gpuTypeIds });
    const shown = (await rest("GET", `/endpoints/${made.id}`)).body;
    expect(shown.gpuIds).toBe("AMPERE_24");
    await save(test, `id: "${made.id}", name: "x", templateId: "${made.templateId}", gpuIds: "AMPERE_24"`);
    expect((await rest("GET", `/endpoints/${made.id}`)).body.gpuTypeIds).toEqual(gpuTypeIds);
  });

  it("takes variables of the public types", async (test) => {
    const { id: templateId } = await makeTemplate(test, server);
    const query = "mutation Save($input: EndpointInput!) { saveEndpoint(input: $input) { id name flashBootType } }";
    const input = { name: "v", templateId, gpuIds: "AMPERE_16", flashBootType: "FLASHBOOT", networkVolumeId: "" };
    const { status, body } = await graphql(query, { input });
    expect([status, body.errors]).toEqual([200, undefined]);
    endWith(test, server, body.data.saveEndpoint.id);
    expect(body.data.saveEndpoint).toMatchObject({ name: "v", flashBootType: "FLASHBOOT" });
  });

  it("lists endpoints with their pods, and no discount", async (test) => {
    const { id, puppet } = await makePuppets(test, server);
    await puppet();
    const query = `{ myself { endpoints { ${fields} } serverlessDiscount { discountFactor type expirationDate } } }`;
    const { status, body } = await graphql(query);
    expect(status).toBe(200);
    expect(Object.keys(body)).toEqual(["data"]);
    expect(body.data.myself.serverlessDiscount).toBeNull();
    const one = body.data.myself.endpoints.find((endpoint: Body) => endpoint.id === id);
    expect(one).toMatchObject({ workersMin: 1, workersMax: 1, pods: [{ desiredStatus: "RUNNING" }] });
  });

  it("deletes an endpoint whose workers are 0, and returns null", async (test) => {
    const { id } = await makeBare(test, server, { workersMax: 0 });
    const { status, body } = await graphql(`mutation { deleteEndpoint(id: "${id}") }`);
    expect([status, body]).toEqual([200, { data: { deleteEndpoint: null } }]);
    expectRefusal(await rest("GET", `/endpoints/${id}`), 404);
  });

  it("answers refusals with 200, a sentence and a code", async (test) => {
    const { id, templateId } = await makeBare(test, server);
    const good = `name: "n", templateId: "${templateId}", gpuIds: "AMPERE_16"`;
    for (const [operation, words] of [
      [`deleteEndpoint(id: "${id}")`, /workersM/],
      [`deleteEndpoint(id: "${unknownId}")`, /\w/],
      [`saveEndpoint(input: {${good.replace(templateId, unknownId)}}) { id }`, /template/i],
      [`saveEndpoint(input: {${good.replace("AMPERE_16", "AMPERE_17")}}) { id }`, /AMPERE_17|gpuIds/],
      [`saveEndpoint(input: {${good}, idleTimeout: 0}) { id }`, /idleTimeout/],
      [`saveEndpoint(input: {${good}, locations: "XX"}) { id }`, /locations/],
      [`saveEndpoint(input: {${good}, scalerType: "MAGIC"}) { id }`, /scalerType/],
      [`saveEndpoint(input: {id: "${unknownId}", ${good}}) { id }`, /\w/],
    ] as const) {
      const { status, body } = await graphql(`mutation { ${operation} }`);
      expect(status, operation).toBe(200);
      expect(body.errors, operation).toHaveLength(1);
      expect(body.errors[0].message).toMatch(words);
      expect(body.errors[0].extensions.code).toMatch(/^[A-Z_]+$/);
      expect(JSON.stringify(body)).not.toMatch(/\n\s+at |stacktrace/i);
    }
    expect((await rest("GET", `/endpoints/${id}`)).status).toBe(200);
  });

  it("answers 400 to a query that does not parse or validate", async () => {
    for (const query of ["{", "{ nothing }", "{ myself { nonsense } }", "mutation { nonsense }", ""]) {
      const { status, body } = await graphql(query);
      expect(status, query).toBe(400);
      expect(body.errors[0].message).toMatch(/\S/);
      expect(body.errors[0].extensions.code).toMatch(/^[A-Z_]+$/);
    }
    for (const body of ["{not json", "[]", "{}"]) {
      const headers = { "content-type": "application/json" };
      expect((await call(server, "POST", "/graphql", body, headers)).status, body).toBe(400);
    }
  });

  it("accepts the key in the URL or the header, and is 401 without one", async () => {
    const body = { query: "{ myself { id } }" };
    const ask = async (query: string, headers: Record<string, string> = {}) => {
      const init = { method: "POST", body: JSON.stringify(body) };
      const reply = await fetch(`${server.url}/graphql${query}`, {
        ...init,
        headers: { "content-type": "application/json", ...headers },
      });
      return { status: reply.status, body: (await reply.json()) as Body };
    };
    const id = (await ask(`?api_key=${server.key}`)).body.data.myself.id;
    expect(id).toMatch(/\S/);
    for (const authorization of [`Bearer ${server.key}`, server.key]) {
      expect((await ask("", { authorization })).body).toEqual({ data: { myself: { id } } });
    }
    for (const reply of [
      await ask(""),
      await ask("?api_key=wrong"),
      await ask("", { authorization: "Bearer wrong" }),
    ]) {
      expect(reply.status).toBe(401);
      expect(reply.body.errors[0].message).toMatch(/\S/);
      expect(reply.body).not.toHaveProperty("data.myself");
    }
    expect(server.log()).not.toContain(`api_key=${server.key}`);
  });

  it("is the same at the public clients' URL", async () => {
    const headers = { "content-type": "application/json" };
    const reply = await call(server, "POST", "/sdk/graphql", { query: "{ myself { id } }" }, headers);
    expect(reply.status).toBe(200);
    expect(reply.body.data.myself.id).toMatch(/\S/);
  });

  it("describes itself", async () => {
    const query = "{ __schema { mutationType { fields { name } } types { name kind } } }";
    const { status, body } = await graphql(query);
    expect(status).toBe(200);
    const mutations = body.data.__schema.mutationType.fields.map((field: Body) => field.name);
    expect(mutations).toEqual(
      expect.arrayContaining(["saveEndpoint", "deleteEndpoint", "saveTemplate", "deleteTemplate"]),
    );
    expect(body.data.__schema.types).toContainEqual({ name: "EndpointInput", kind: "INPUT_OBJECT" });
  });

  it("shows browsers an explorer that fetches nothing from elsewhere", async () => {
    const reply = await fetch(`${server.url}/graphql`, { headers: { accept: "text/html" } });
    const page = await reply.text();
    expect(reply.status).toBe(200);
    expect(reply.headers.get("content-type")).toMatch(/^text\/html/);
    expect(page).toMatch(/<html/i);
    expect(page).not.toMatch(/(src|href|action)\s*=\s*["']?(https?:)?\/\//i);
    expect(page).not.toMatch(/import\s*(\(|[^"']*from\s*)["']https?:/);
    expect(page).not.toContain(server.key);
  });
});
