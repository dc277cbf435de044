import { afterAll, beforeAll, expect, it } from "vitest";
import { makeHandler } from "../../e2e/handlers.js";
import { call, makeEndpoint, startServer, type TestServer } from "../../harness.js";
import { newerPython } from "../environments/newer-python.js";
import { runScript } from "../environments/python-scripts.js";
import { type Mcp, startMcp } from "../mcp.js";
import { jsClient } from "../stock.js";

let server: TestServer;
const undos: (() => void | Promise<void>)[] = [];
const ending = { onTestFinished: (undo: () => void | Promise<void>) => void undos.push(undo) };
beforeAll(async () => {
  server = await startServer();
});
afterAll(async () => {
  for (const undo of undos.splice(0)) await undo();
  await server?.end();
});

const as = (key: string): TestServer => ({ ...server, key });

async function made(by: string, path: string, body: object): Promise<{ readonly id: string; readonly key: string }> {
  const reply = await call(as(by), "POST", path, body);
  expect([200, 201], JSON.stringify(reply.body)).toContain(reply.status);
  return reply.body;
}

/** A member with a key for everything. */
async function member(name: string): Promise<{ readonly id: string; readonly key: string }> {
  const { id } = await made(server.key, "/v1/users", { name, role: "member" });
  const { key } = await made(server.key, "/v1/apikeys", { name: `${name}, first`, userId: id });
  return { id, key };
}

async function mcpOf(key: string, version: 3 | 4, env: Record<string, string> = {}): Promise<Mcp> {
  const mcp = await startMcp(as(key), version, env);
  undos.push(() => mcp.end());
  return mcp;
}

const worked = async (mcp: Mcp, tool: string, args: object = {}) => {
  const reply = await mcp.call(tool, args);
  expect(reply.isError || reply.json?.error !== undefined, `${tool}: ${reply.text}`).toBe(false);
  return reply;
};
const failed = async (mcp: Mcp, tool: string, args: object = {}) => {
  const { isError, json, text } = await mcp.call(tool, args);
  expect(isError || json?.error !== undefined, `${tool} should have been refused: ${text}`).toBe(true);
};

it("Three users with keys of each scope work on one server over different clients, apart from each other", async () => {
  const [vision, speech] = [await member("vision"), await member("speech")];

  // one manages over REST v2, one over REST v1
  const newer = await mcpOf(vision.key, 4);
  const older = await mcpOf(speech.key, 3, { RUNPOD_REST_VERSION: "v1", RUNPOD_REST_API_URL: `${server.url}/sdk/v1` });
  const body = {
    name: "captions",
    image: "registry.example/captions:1",
    type: "QUEUE",
    gpu: { pools: ["ADA_24"] },
    workers: { min: 0, max: 0 },
    scaling: { type: "QUEUE_DELAY", queueDelay: 4 },
  };
  const captions: string = (await worked(newer, "create-endpoint", { body })).json.id;
  const image = { name: "voices", imageName: "registry.example/voices:1", isServerless: true };
  const templateId: string = (await worked(older, "create-template", image)).json.id;
  const place = { computeType: "GPU", gpuTypeIds: ["NVIDIA L4"], gpuCount: 1, workersMin: 0, workersMax: 0 };
  const voices: string = (await worked(older, "create-endpoint", { name: "voices", templateId, ...place })).json.id;
  // the third, who owns this machine, runs a handler on it
  const handler = makeHandler(ending, "export default async (input) => ({ doubled: 2 * input.n });");
  const doubles = await makeEndpoint(server, handler, { workersMax: 1 });

  // each sees and changes their own, and nothing of the others
  const [seenNewer, seenOlder] = [await worked(newer, "list-endpoints"), await worked(older, "list-endpoints")];
  for (const [text, own] of [
    [seenNewer.text, captions],
    [seenOlder.text, voices],
  ] as const)
    for (const each of [captions, voices, doubles]) expect(text.includes(each), each).toBe(each === own);
  await worked(newer, "update-endpoint", { id: captions, body: { name: "captions 2" } });
  await failed(newer, "get-endpoint", { id: voices });
  await failed(newer, "delete-endpoint", { id: doubles });
  await failed(older, "get-endpoint", { endpointId: captions });
  await failed(older, "run-endpoint", { endpointId: doubles, input: { n: 1 } });

  // a key that only reads shows everything of its user, and changes nothing
  const reader = await made(vision.key, "/v1/apikeys", { name: "dashboard", scope: "read" });
  const reading = await mcpOf(reader.key, 4);
  expect((await worked(reading, "list-endpoints")).text).toContain(captions);
  await failed(reading, "create-endpoint", { body });
  await failed(reading, "run-endpoint", { id: captions, endpointId: captions, input: {}, body: { input: {} } });

  // keys of one endpoint: one submits, one watches
  const scoped = (access: string) => ({ endpoints: [{ id: doubles, access }] });
  const web = await made(server.key, "/v1/apikeys", { name: "web shop", scope: scoped("run") });
  const watcher = await made(server.key, "/v1/apikeys", { name: "screen", scope: scoped("read") });
  const job = await jsClient(server, doubles, web.key).runSync({ input: { n: 21 } });
  expect(job).toMatchObject({ status: "COMPLETED", output: { doubled: 42 } });
  const watching = jsClient(server, doubles, watcher.key);
  expect(await watching.status(job.id)).toMatchObject({ output: { doubled: 42 } });
  expect((await watching.health()).jobs.completed).toBe(1);
  await expect(watching.run({ input: { n: 1 } })).rejects.toMatchObject({ response: { status: 401 } });
  await expect(jsClient(server, captions, web.key).health()).rejects.toMatchObject({ response: { status: 404 } });

  // the Python package counts only its own user's resources
  const found = await runScript(newerPython(), "listing", {
    env: { CLIENT_KEY: speech.key, RUNPOD_API_BASE_URL: `${server.url}/sdk` },
  });
  expect(found).toEqual({ user: speech.id, endpoints: [voices], pods: [] });

  // what they did is written down, with who did it
  const { body: audit } = await call(server, "GET", "/v1/audit?limit=100");
  const creators = audit.entries
    .filter(({ action }: { action: string }) => action === "endpoint.create")
    .map(({ userId, resource }: { userId: string; resource: string }) => [userId, resource]);
  expect(creators).toEqual(
    expect.arrayContaining([
      [vision.id, captions],
      [speech.id, voices],
    ]),
  );
});
