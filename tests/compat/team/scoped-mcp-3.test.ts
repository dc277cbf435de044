import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { makeHandler } from "../../e2e/handlers.js";
import { call, makeEndpoint, startServer, type TestServer } from "../../harness.js";
import { startMcp } from "../mcp.js";

let server: TestServer;
const undos: (() => void | Promise<void>)[] = [];
const ending = { onTestFinished: (undo: () => void | Promise<void>) => void undos.push(undo) };
let ids: Record<"endpointId" | "templateId" | "podId" | "networkVolumeId" | "workerId" | "jobId", string>;
let other: string;
const keys = { read: "", watch: "", run: "", stranger: "" };
type Kind = keyof typeof keys;
const secretValue = "a value of the environment";

beforeAll(async () => {
  server = await startServer({ MILLRACE_RATE_LIMITS: "off" });
  const made = async (path: string, body: object) => {
    const reply = await call(server, "POST", path, body);
    expect([200, 201], JSON.stringify(reply.body)).toContain(reply.status);
    return reply.body;
  };
  const handler = makeHandler(ending, "export default async (input) => ({ doubled: 2 * input.n });");
  const volume = await made("/v1/networkvolumes", { name: "a volume", size: 10, dataCenterId: "EU-RO-1" });
  const endpointId = await makeEndpoint(
    server,
    handler,
    { workersMin: 1, workersMax: 1, networkVolumeId: volume.id },
    { env: { TOKEN: secretValue } },
  );
  other = await makeEndpoint(server, handler, { workersMax: 0 });
  const { templateId } = (await call(server, "GET", `/v1/endpoints/${endpointId}`)).body;
  const pod = await made("/v1/pods", { name: "pod", imageName: "registry.example/image:1" });
  const { id: jobId } = (await call(server, "POST", `/v2/${endpointId}/runsync`, { input: { n: 1 } })).body;
  const { workers } = (await call(server, "GET", `/v2/serverless/${endpointId}/workers`)).body;
  ids = { endpointId, templateId, podId: pod.id, networkVolumeId: volume.id, workerId: workers[0].id, jobId };
  const scoped = (access: string) => ({ endpoints: [{ id: endpointId, access }] });
  keys.read = (await made("/v1/apikeys", { name: "read", scope: "read" })).key;
  keys.watch = (await made("/v1/apikeys", { name: "watch", scope: scoped("read") })).key;
  keys.run = (await made("/v1/apikeys", { name: "run", scope: scoped("run") })).key;
  const { id: userId } = await made("/v1/users", { name: "stranger", role: "member" });
  keys.stranger = (await made("/v1/apikeys", { name: "stranger", userId })).key;
});
afterAll(async () => {
  await server?.end();
  for (const undo of undos) await undo();
});

/** Arguments of every tool that takes any, naming the admin's things. */
const argumentsOf = (tool: string): object => {
  const own = {
    "create-template": { name: "t", imageName: "alpine:3" },
    "create-network-volume": { name: "v", size: 10, dataCenterId: "EU-RO-1" },
    "create-container-registry-auth": { name: "r", username: "u", password: "p" },
    "create-endpoint": { name: "e", templateId: ids.templateId, imageName: "alpine:3", gpuPoolIds: ["AMPERE_24"] },
    "create-pod": { name: "p", imageName: "alpine:3", gpuTypeIds: ["NVIDIA L4"], gpuCount: 1 },
    "deploy-hub-repo": { repo: "someone/something" },
    "create-registry-delegation": { resource: "arn:aws:ecr:eu-west-1:1:repository/r" },
  }[tool];
  if (tool.startsWith("list-") && !tool.startsWith("list-endpoint-")) return {};
  return (
    own ?? {
      ...ids,
      containerRegistryAuthId: "aaaaaaaaaaaaaa",
      delegationId: "none",
      name: "h",
      input: { n: 4 },
      pools: ["ADA_24"],
      gpuTypeId: "NVIDIA L4",
      cpuTypeId: "cpu3c",
      dataCenterId: "EU-RO-1",
      maxWaitMs: 1_000,
      includeTemplate: true,
      includeWorkers: true,
      scope: "all",
    }
  );
};

const isChange = (tool: string) => /^(create|update|delete|set|deploy|start|stop|restart)-/.test(tool);
const isOfJobs = (tool: string) => /^(run|runsync|cancel|retry|purge)-/.test(tool);

interface Reply {
  readonly text: string;
  readonly isRefused: boolean;
}

/** Calls every tool with a key, over one version of REST. */
async function saidTo(kind: Kind, version: "v1" | "v2"): Promise<Map<string, Reply>> {
  const mcp = await startMcp({ ...server, key: keys[kind] }, 3, {
    RUNPOD_REST_VERSION: version,
    RUNPOD_REST_API_URL: `${server.url}/sdk/v1`,
    RUNPOD_REST_V2_API_URL: `${server.url}/sdk/v2`,
  });
  const said = new Map<string, Reply>();
  try {
    for (const tool of mcp.tools) {
      const { isError, json, text } = await mcp.call(tool, argumentsOf(tool));
      said.set(tool, { text, isRefused: isError || json?.error !== undefined });
    }
  } finally {
    mcp.end();
  }
  return said;
}

describe.each(["v1", "v2"] as const)("Version 3 of the MCP server over REST %s", (version) => {
  it.each(["watch", "run"] as const)("sees and uses nothing but its endpoint with a key to %s it", async (kind) => {
    const said = await saidTo(kind, version);
    for (const [tool, { text, isRefused }] of said) {
      expect(text, tool).not.toContain(secretValue);
      expect(text, tool).not.toContain(other);
      if (isChange(tool)) expect(isRefused, `${tool}: ${text}`).toBe(true);
      if (!isRefused) expect(text, tool).not.toContain(ids.podId);
      if (isOfJobs(tool) && kind === "watch") expect(text, tool).toContain("This key may only read.");
    }
    const works = (tool: string) => expect(said.get(tool), tool).toMatchObject({ isRefused: false });
    for (const tool of ["get-endpoint", "get-job-status", "stream-job", "endpoint-health", "get-template"]) works(tool);
    for (const tool of ["list-endpoints", "list-templates", "list-network-volumes", "get-network-volume"]) works(tool);
    expect(said.get("list-endpoints")?.text).toContain(ids.endpointId);
    for (const tool of ["list-pods", "get-pod", "list-container-registry-auths"])
      expect(said.get(tool)?.text, tool).toContain("for chosen endpoints: it does not see");
    if (kind === "watch") return;
    for (const tool of ["run-endpoint", "runsync-endpoint", "purge-endpoint-queue"]) works(tool);
    for (const tool of ["cancel-job", "retry-job"]) expect(said.get(tool)?.text, tool).toContain("INVALID_STATE");
  });

  it("reads everything with a key that only reads, and changes nothing", async () => {
    const said = await saidTo("read", version);
    for (const [tool, { text, isRefused }] of said)
      if (isChange(tool) || isOfJobs(tool)) expect(isRefused, `${tool}: ${text}`).toBe(true);
    for (const id of [ids.endpointId, other]) expect(said.get("list-endpoints")?.text).toContain(id);
    expect(said.get("list-pods")?.text).toContain(ids.podId);
  });

  it("finds nothing of another user's", async () => {
    const said = await saidTo("stranger", version);
    for (const [tool, { text, isRefused }] of said) {
      expect(text, tool).not.toContain(secretValue);
      for (const id of isRefused ? [] : [...Object.values(ids), other]) expect(text, tool).not.toContain(id);
    }
    for (const tool of ["get-endpoint", "get-template", "get-pod", "get-network-volume", "get-job-status"])
      expect(said.get(tool)?.isRefused, tool).toBe(true);
  });
});
