import { AjvCompiler } from "@fastify/ajv-compiler";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Http, openHttp } from "../../testing/http-fixture.js";
import { Scene } from "../../testing/scene-fixture.js";
import { descriptions } from "./descriptions.js";
import { examples } from "./examples.js";
import { operationIds } from "./operation-ids.js";

interface Reply {
  readonly $ref?: string;
  readonly description?: string;
  readonly headers?: Readonly<Record<string, object>>;
  readonly content?: Readonly<Record<string, { readonly example?: unknown }>>;
}
interface Operation {
  readonly summary?: string;
  readonly description?: string;
  readonly operationId?: string;
  readonly tags?: readonly string[];
  readonly responses: Record<string, unknown>;
  readonly requestBody?: { readonly content: { readonly "application/json": { readonly example?: object } } };
}
interface Document {
  readonly openapi: string;
  readonly servers: readonly { url: string }[];
  readonly paths: Record<string, Record<string, Operation>>;
}

let scene: Scene;
let http: Http;
beforeAll(async () => {
  scene = await Scene.open();
  http = await openHttp(scene, { rates: undefined });
});
afterAll(async () => {
  await http.close();
  await scene.close();
});

/** Every parameter of a path, filled in. */
const filled = (path: string, ids: Record<string, string>) =>
  path.replaceAll(/\{(\w+)\}/g, (_, name: string) => ids[name] ?? "nothing");

/** Which parameter of other paths the ids of a collection are. */
const parameters: Record<string, string> = {
  endpoints: "endpointId",
  serverless: "endpointId",
  templates: "templateId",
  networkvolumes: "networkVolumeId",
  "network-volumes": "networkVolumeId",
  users: "userId",
  apikeys: "keyId",
  pods: "podId",
  secrets: "secretId",
};
const idOf = (path: string) => parameters[path.split("/").at(-1) as string] ?? path;

/** The answer to a call that may wait for the clock. */
async function answered(answer: ReturnType<Http["call"]>) {
  let over = false;
  void answer.then(() => {
    over = true;
  });
  await scene.until(async () => {
    if (!over) await scene.advance(100);
    return over;
  });
  return answer;
}

const bodies: Record<string, unknown> = {
  "/run": { input: {} },
  "/runsync": { input: {} },
  "/endpoints": { name: "e" },
  "/templates": { name: "t", imageName: "registry.example/image" },
  "/containerregistryauth": { name: "r", username: "u", password: "p" },
  "/networkvolumes": { name: "v", size: 1, dataCenterId: "here" },
  "/serverless": {
    name: "e",
    type: "QUEUE",
    image: "registry.example/image",
    gpu: { pools: ["ADA_24"] },
    scaling: { type: "REQUEST_COUNT", requestCount: 4 },
  },
  "/network-volumes": { name: "v2", size: 10, dataCenter: "here" },
  "/registries": { name: "r2", username: "u", password: "p" },
};

describe.each(["/v1", "/v2"])("The OpenAPI document of %s", (prefix) => {
  const load = async () => (await http.get(`${prefix}/openapi.json`, { key: null })).json as Document;
  async function operations() {
    const { paths } = await load();
    return Object.entries(paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, operation]) => ({ path, method: method.toUpperCase(), operation })),
    );
  }

  it("needs no key, and describes each operation in words", async () => {
    expect((await load()).openapi).toBe("3.1.0");
    const all = await operations();
    expect(all.length).toBeGreaterThan(8);
    const isMute = ({ summary, description }: Operation) => !summary || !description || description.includes(summary);
    const mute = all.filter(({ operation }) => isMute(operation));
    expect(mute.map(({ operation, path }) => `${operation.operationId} ${path}`)).toEqual([]);
  });

  it("gives each operation a name that no other has, and a tag", async () => {
    expect((await load()).servers.map(({ url }) => url)).toEqual(["/"]);
    const all = await operations();
    const names = all.map(({ operation }) => operation.operationId);
    expect(all.filter(({ operation }) => !operation.operationId || operation.tags?.length !== 1)).toEqual([]);
    expect(new Set(names).size).toBe(names.length);
  });

  it("shows a body for each operation that takes one, and that body works; a field too many is named in its header", async () => {
    const all = (await operations()).filter(({ operation }) => operation.requestBody);
    const isCreation = ({ path }: { path: string }) => !path.includes("{");
    const ids: Record<string, string> = {};
    const template = await http.post("/v1/templates", { name: "t", imageName: "registry.example/image" });
    ids.templateId = template.json.id;
    const refused: unknown[] = [];
    for (const { path, method, operation } of [...all.filter(isCreation), ...all.filter((one) => !isCreation(one))]) {
      const example = operation.requestBody?.content["application/json"].example as Record<string, unknown>;
      const body = example && { ...example, ...("templateId" in example ? { templateId: ids.templateId } : {}) };
      const query = path.endsWith("/runsync") ? "?wait=1000" : "";
      const isStrict = path.endsWith("/action");
      const answer = http.call(method, filled(path, ids) + query, {
        body: isStrict ? body : body && { ...body, misspelt: 1 },
      });
      const { status, json, headers } = await answered(answer);
      if (status >= 300 || !example) refused.push([method, path, status, json]);
      const [described] = Object.keys((operation.responses[status] as Reply | undefined)?.headers ?? {});
      if (isStrict ? described : headers.get(described ?? "none") !== "misspelt")
        refused.push([method, path, status, described]);
      if (method === "POST" && json?.id && isCreation({ path })) ids[idOf(path)] = json.id;
    }
    expect(refused).toEqual([]);
  });

  it("names every status that a valid or an obviously invalid call can get", async () => {
    const undocumented: string[] = [];
    for (const { path, method, operation } of await operations()) {
      const endpoint = await scene.endpoint({ workersMax: 0 });
      const jobId = await scene.submit(endpoint);
      const ids = { endpointId: endpoint.id, jobId, templateId: endpoint.settings.templateId };
      const last = `/${path.split("/").at(-1)}`;
      const body = { ...(bodies[last] as object), templateId: endpoint.settings.templateId };
      const hasBody = operation.requestBody !== undefined;
      const query = last === "/runsync" || path.includes("status-sync") ? "?wait=1000" : "";
      const calls = [
        ["without a key", filled(path, ids), { key: null }],
        ["of unknown ids", filled(path, {}), hasBody ? { body } : {}],
        ["that is valid", filled(path, ids) + query, hasBody ? { body } : {}],
        ...(hasBody ? ([["without a body", filled(path, ids), {}]] as const) : []),
        ...(hasBody ? ([["that is not JSON", filled(path, ids), { body: "{" }]] as const) : []),
      ] as const;
      for (const [what, address, call] of calls) {
        const isEndless = path === "/v1/events" && what !== "without a key";
        if (isEndless) continue;
        const answer = http.call(method, address, call);
        const { status, json } = await answered(answer);
        const names = `${method} ${address} ${what}: ${status}`;
        if (!(String(status) in operation.responses) || status >= 500) undocumented.push(names);
        if (status >= 400 && typeof json?.code !== "string") undocumented.push(`${names} without a code`);
      }
    }
    expect(undocumented).toEqual([]);
  });
});

it.each(["/v1", "/v2"])("Every reply in the document of %s is described and has an example", async (prefix) => {
  const { paths, components } = (await http.get(`${prefix}/openapi.json`, { key: null })).json;
  const bare: unknown[] = [];
  for (const [path, methods] of Object.entries<Record<string, Operation>>(paths))
    for (const [method, { responses }] of Object.entries(methods))
      for (const [status, reply] of Object.entries(responses as Record<string, Reply>)) {
        const found: Reply = reply.$ref ? components.responses[reply.$ref.split("/").at(-1)!] : reply;
        const { description, content = {} } = found;
        const isBare = !description || description === "Default Response";
        if (isBare || Object.values(content).some(({ example }) => example === undefined))
          bare.push([method, path, status]);
      }
  expect(bare).toEqual([]);
});

it("No operation is described that is not there", async () => {
  const named = new Set<string | undefined>();
  for (const prefix of ["/v1", "/v2"]) {
    const { paths } = (await http.get(`${prefix}/openapi.json`, { key: null })).json as Document;
    for (const methods of Object.values(paths))
      for (const { operationId } of Object.values(methods)) named.add(operationId);
  }
  const texts = [...Object.keys(descriptions), ...Object.values(operationIds), ...Object.keys(examples)];
  expect(texts.filter((name) => !named.has(name))).toEqual([]);
});

it("The OpenAPI document of /v2 defines which strings are webhooks, and that an empty string and null mean none", async () => {
  const { paths } = (await http.get("/v2/openapi.json", { key: null })).json;
  const endpoint = await scene.endpoint({ workersMax: 0 });
  for (const route of ["run", "runsync"]) {
    const { webhook } =
      paths[`/v2/{endpointId}/${route}`].post.requestBody.content["application/json"].schema.properties;
    expect(webhook.anyOf).toEqual([
      expect.objectContaining({ type: "string", format: "uri" }),
      { type: "string", enum: [""] },
      { type: "null" },
    ]);
    expect(webhook.description).toMatch(/empty text and null mean none/);
  }
  for (const webhook of ["", null]) {
    expect((await http.post(`/v2/${endpoint.id}/run`, { input: {}, webhook })).status).toBe(200);
  }
});

it.each(["/v1", "/v2"])("The schemas in the document of %s are valid JSON Schema", async (prefix) => {
  interface Taking {
    readonly parameters?: readonly { readonly schema: object }[];
    readonly requestBody?: { readonly content: Record<string, { readonly schema: object }> };
  }
  const { paths } = (await http.get(`${prefix}/openapi.json`, { key: null })).json;
  const operations = Object.values<Record<string, Taking>>(paths).flatMap((methods) => Object.values(methods));
  const schemas = operations.flatMap(({ parameters = [], requestBody }) =>
    [...parameters, ...Object.values(requestBody?.content ?? {})].map(({ schema }) => schema),
  );
  expect(schemas.length).toBeGreaterThan(50);
  const compile = AjvCompiler()({}, { customOptions: { strict: false } });
  for (const schema of schemas)
    expect(() => compile({ schema, method: "", url: "" }), JSON.stringify(schema)).not.toThrow();
});

it("public clients find the documents under /sdk, with the names they look for, and paths of that prefix", async () => {
  const document = async (path: string) => (await http.get(path, { key: null })).json;
  const v1 = await document("/sdk/v1/openapi.json");
  const { PodCreateInput, Pods } = v1.components.schemas;
  expect(PodCreateInput.properties.dataCenterIds.items.enum).toContain("EU-RO-1");
  expect([Pods.type, Pods.items.properties.id.type]).toEqual(["array", "string"]);
  expect(JSON.stringify(v1.components.schemas)).not.toContain('"null"');
  const v2 = await document("/sdk/v2/openapi.json");
  expect(v2.components.schemas.CreatePodRequest.type).toBe("object");
  for (const [version, { servers, paths }] of Object.entries({ v1, v2 })) {
    const own = (await document(`/${version}/openapi.json`)).paths;
    expect(servers).toEqual([expect.objectContaining({ url: `/sdk/${version}` })]);
    expect(Object.keys(paths).map((path) => `/${version}${path}`)).toEqual(Object.keys(own));
    const lists = Object.keys(paths).filter((path) =>
      /^\/(pods|endpoints|templates|serverless|registries)$/.test(path),
    );
    expect(lists.length).toBeGreaterThan(2);
    for (const path of lists) expect([path, (await http.get(`${servers[0].url}${path}`)).status]).toEqual([path, 200]);
  }
});
