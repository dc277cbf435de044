import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { makeHandler } from "../../e2e/handlers.js";
import { call, makeEndpoint, startServer, type TestServer } from "../../harness.js";
import { newerPython } from "../environments/newer-python.js";
import { runScript } from "../environments/python-scripts.js";
import type { Finding } from "../outcomes.js";
import { runpodctl } from "../runpodctl.js";
import { python } from "../stock.js";

let server: TestServer;
const undos: (() => void | Promise<void>)[] = [];
const ending = { onTestFinished: (undo: () => void | Promise<void>) => void undos.push(undo) };
/** The endpoint of two of the keys, its template and pod; and what only its user's other keys, or another user, may see. */
let own: { readonly endpoint: string; readonly template: string; readonly pod: string };
let other: string;
const keys = { read: "", watch: "", run: "", stranger: "" };
const secretValue = "a value of the environment";

beforeAll(async () => {
  server = await startServer();
  const made = async (path: string, body: object, key = server.key) => {
    const reply = await call({ ...server, key }, "POST", path, body);
    expect([200, 201], JSON.stringify(reply.body)).toContain(reply.status);
    return reply.body;
  };
  const handler = makeHandler(ending, "export default async (input) => ({ doubled: 2 * input.n });");
  const endpoint = await makeEndpoint(server, handler, { workersMax: 1 }, { env: { TOKEN: secretValue } });
  const { templateId } = (await call(server, "GET", `/v1/endpoints/${endpoint}`)).body;
  other = await makeEndpoint(server, handler, { workersMax: 0 });
  const { id: pod } = await made("/v1/pods", { name: "pod", imageName: "registry.example/image:1" });
  own = { endpoint, template: templateId, pod };
  const scoped = (access: string) => ({ endpoints: [{ id: endpoint, access }] });
  keys.read = (await made("/v1/apikeys", { name: "read", scope: "read" })).key;
  keys.watch = (await made("/v1/apikeys", { name: "watch", scope: scoped("read") })).key;
  keys.run = (await made("/v1/apikeys", { name: "run", scope: scoped("run") })).key;
  const { id: userId } = await made("/v1/users", { name: "stranger", role: "member" });
  keys.stranger = (await made("/v1/apikeys", { name: "stranger", userId })).key;
  await made("/v1/templates", { name: "theirs", imageName: "registry.example/image:1" }, keys.stranger);
});
afterAll(async () => {
  await server?.end();
  for (const undo of undos) await undo();
});

const asked = (interpreter: string, key: string): Promise<Record<string, Finding>> =>
  runScript(interpreter, "scoped", {
    env: {
      CLIENT_KEY: key,
      RUNPOD_API_KEY: key,
      RUNPOD_API_BASE_URL: `${server.url}/sdk`,
      RUNPOD_ENDPOINT_BASE_URL: `${server.url}/sdk/v2`,
      RUNPOD_REST_API_URL: `${server.url}/sdk/v1`,
      RUNPOD_URL_MIXED_OK: "1",
      RUNPOD_FLASH_SILENCE_DEPRECATION: "1",
    },
    words: [own.endpoint, own.template, own.pod],
  });
const refusedAs = (words: RegExp) => ({ error: expect.stringMatching(words) });
const unauthorized = refusedAs(/Unauthorized|may not change/);

describe.each([
  ["1", python],
  ["2, and flash", newerPython],
])("Version %s of the Python package", (_, interpreter) => {
  it("reads everything of its user with a key that only reads, and changes nothing", async () => {
    const found = await asked(interpreter(), keys.read);
    expect(found).toMatchObject({
      health: { gave: { jobs: {} } },
      run_sync: unauthorized,
      get_pods: { gave: [own.pod] },
      create_template: unauthorized,
      stop_pod: unauthorized,
    });
    expect(found.get_endpoints?.gave?.toSorted()).toEqual([own.endpoint, other].toSorted());
    if (interpreter === newerPython) expect(JSON.stringify(found["flash get_template"])).toContain(secretValue);
  });

  it.each(["watch", "run"] as const)("sees nothing but its endpoint with a key to %s it", async (kind) => {
    const found = await asked(interpreter(), keys[kind]);
    expect(found).toMatchObject({
      health: { gave: { jobs: {} } },
      run_sync: kind === "run" ? { gave: { doubled: 8 } } : unauthorized,
      get_endpoints: { gave: [own.endpoint] },
      get_pods: refusedAs(/for chosen endpoints: it does not see pods/),
      create_template: unauthorized,
      stop_pod: unauthorized,
    });
    expect(JSON.stringify(found)).not.toContain(secretValue);
    if (interpreter !== newerPython) return;
    expect(found).toMatchObject({
      "flash get_template": { gave: { env: [{ key: "TOKEN" }] } },
      "flash save_endpoint": unauthorized,
      "flash list_network_volumes": { gave: [] },
    });
  });

  it("finds nothing of another user's", async () => {
    const found = await asked(interpreter(), keys.stranger);
    expect(found).toMatchObject({
      health: refusedAs(/404/),
      run_sync: refusedAs(/404/),
      get_endpoints: { gave: [] },
      get_pods: { gave: [] },
      stop_pod: refusedAs(/There is no pod|not found/i),
    });
    expect(JSON.stringify(found)).not.toContain(secretValue);
  });
});

describe("runpodctl", () => {
  const ctl = (kind: keyof typeof keys) => runpodctl({ ...server, key: keys[kind] });
  const ids = (list: readonly { readonly id: string }[]) => list.map(({ id }) => id);
  const pods = "query { myself { pods { id } } }";

  it("reads everything with a key that only reads", async () => {
    expect(ids(await ctl("read").rest("GET", "/endpoints")).toSorted()).toEqual([own.endpoint, other].toSorted());
    expect(ids((await ctl("read").graphql(pods)).myself.pods)).toEqual([own.pod]);
    await expect(ctl("read").rest("POST", `/pods/${own.pod}/stop`)).rejects.toThrow("may not change resources");
  });

  it.each(["watch", "run"] as const)("sees one endpoint with a key to %s it", async (kind) => {
    const shown = await ctl(kind).rest("GET", "/endpoints?includeTemplate=true&includeWorkers=true");
    expect(ids(shown)).toEqual([own.endpoint]);
    expect(JSON.stringify(shown)).not.toContain(secretValue);
    for (const path of ["/pods", "/containerregistryauth", "/billing/endpoints", "/secrets", "/apikeys"])
      await expect(ctl(kind).rest("GET", path), path).rejects.toThrow("for chosen endpoints: it does not see");
    await expect(ctl(kind).graphql(pods)).rejects.toThrow("it does not see pods");
    await expect(ctl(kind).rest("PATCH", `/endpoints/${own.endpoint}`, { name: "h" })).rejects.toThrow(
      "may not change",
    );
  });

  it("finds nothing of another user's", async () => {
    expect(await ctl("stranger").rest("GET", "/endpoints")).toEqual([]);
    await expect(ctl("stranger").rest("GET", `/pods/${own.pod}`)).rejects.toThrow("There is no pod");
    await expect(ctl("stranger").rest("DELETE", `/endpoints/${own.endpoint}`)).rejects.toThrow("There is no endpoint");
  });
});
