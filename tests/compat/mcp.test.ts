import { afterAll, beforeAll, expect, it } from "vitest";
import { makeHandler } from "../e2e/handlers.js";
import { makeEndpoint, startServer, type TestServer, until } from "../harness.js";
import { type Mcp, type Said, startMcp } from "./mcp.js";
import { mcpCalls } from "./mcp-calls.js";

let server: TestServer;
let mcp: Mcp;
const undos: (() => void)[] = [];
const ending = { onTestFinished: (undo: () => void) => void undos.unshift(undo) };
/** An endpoint with a worker that streams two chunks. */
let running: string;

beforeAll(async () => {
  server = await startServer({ MILLRACE_PUBLIC_CATALOG: "on", MILLRACE_RATE_LIMITS: "off" });
  mcp = await startMcp(server);
  const handler = 'console.log("hello");\nexport default async function* () { yield 1; yield 2; }\n';
  running = await makeEndpoint(server, makeHandler(ending, handler), { workersMin: 1, workersMax: 1 });
}, 120_000);
afterAll(async () => {
  mcp?.end();
  await server?.end();
  for (const undo of undos) undo();
});

const said = new Map<string, Said>();

/** Calls a tool, and checks that its outcome is the table's. */
async function call(tool: string, args: object = {}): Promise<Said> {
  const reply = await mcp.call(tool, args);
  const outcome = mcpCalls.calls[tool];
  expect(reply.isError, `${tool}: ${reply.text}`).toBe(outcome !== "works");
  said.set(tool, reply);
  return reply;
}
const idOf = async (reply: Promise<Said>): Promise<string> => (await reply).json.id;

it("Every tool of the stock MCP server does what the table of compatibility says", { timeout: 180_000 }, async () => {
  const named = { name: "of the MCP server", image: "alpine:3" };
  const template = await idOf(call("create-template", { body: { ...named, env: { A: "1" }, ports: ["8888/http"] } }));
  await call("list-templates");
  await call("get-template", { id: template });
  expect((await call("update-template", { id: template, body: { image: "alpine:3.20" } })).json.image).toBe(
    "alpine:3.20",
  );
  await call("list-public-templates");

  const volume = await idOf(call("create-network-volume", { body: { name: "v", size: 10, dataCenter: "EU-RO-1" } }));
  await call("list-network-volumes");
  await call("get-network-volume", { id: volume });
  expect((await call("update-network-volume", { id: volume, body: { size: 20 } })).json.size).toBe(20);
  const registry = await idOf(call("create-registry", { body: { name: "r", username: "u", password: "p" } }));
  await call("list-registries");
  await call("get-registry", { id: registry });

  const body = {
    ...named,
    type: "QUEUE",
    gpu: { pools: ["ADA_24"], count: 1 },
    workers: { min: 0, max: 0 },
    scaling: { type: "QUEUE_DELAY", queueDelay: 4 },
    networkVolumes: [volume],
  };
  const endpoint = await idOf(call("create-endpoint", { body }));
  expect((await call("list-endpoints")).text).toContain(endpoint);
  expect((await call("get-endpoint", { id: endpoint })).json).toMatchObject({
    type: "QUEUE",
    networkVolumes: [volume],
  });
  await call("update-endpoint", { id: endpoint, body: { workers: { max: 0 }, env: { B: "2" } } });
  const gpus = { endpointId: endpoint, pools: ["AMPERE_24"], excludeGpuTypeIds: ["NVIDIA L4"] };
  expect((await call("set-endpoint-gpus", gpus)).json.endpoint.gpuIds).toBe("AMPERE_24,-NVIDIA L4");
  await call("list-endpoint-releases", { id: endpoint });
  await call("list-endpoint-builds", { id: endpoint });
  await call("get-endpoint-build", { id: endpoint, buildId: "none" });

  const job = await idOf(call("run-endpoint", { endpointId: endpoint, input: { a: 1 } }));
  expect((await call("get-job-status", { endpointId: endpoint, jobId: job })).json.status).toBe("IN_QUEUE");
  await call("endpoint-health", { endpointId: endpoint });
  await call("cancel-job", { endpointId: endpoint, jobId: job });
  await call("retry-job", { endpointId: endpoint, jobId: job });
  await call("purge-endpoint-queue", { endpointId: endpoint });
  const sync = await call("runsync-endpoint", { endpointId: running, input: {} });
  expect(sync.json.status).toBe("COMPLETED");
  const streamed = await idOf(mcp.call("run-endpoint", { endpointId: running, input: {} }));
  expect((await call("stream-job", { endpointId: running, jobId: streamed })).text).toMatch(/COMPLETED/);
  const { workers } = (await call("list-endpoint-workers", { id: running })).json;
  const logs = { endpointId: running, workerId: workers[0].id, maxWaitMs: 2_000 };
  await until(async () => (await mcp.call("stream-worker-logs", logs)).text.includes("hello"), 30_000);
  await call("stream-worker-logs", logs);

  await call("list-gpu-types", { include: ["AVAILABILITY"] });
  await call("get-gpu-type", { id: "NVIDIA L4" });
  await call("list-cpu-types");
  await call("get-cpu-type", { id: "cpu3c" });
  await call("list-data-centers", { include: ["GPU_AVAILABILITY"], regions: ["EUROPE"] });
  await call("get-data-center", { id: "EU-RO-1" });
  await call("get-capacity", { cudaVersions: ["12.4"], includeUnavailable: true });
  await call("list-hub-repos");
  await call("deploy-hub-repo", { repo: "someone/something" });
  await call("list-public-endpoints");
  const keys = ["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5 me@here"];
  await call("update-ssh-keys", { body: { keys } });
  expect((await call("get-ssh-keys")).json).toEqual({ keys });

  for (const tool of ["list-clusters", "list-delegations"]) await call(tool);
  for (const tool of ["get-cluster", "delete-cluster", "list-cluster-pods", "revoke-delegation"])
    await call(tool, { id: "none" });
  await call("create-cluster", { body: { name: "c" } });
  await call("update-cluster", { id: "none", body: { name: "c" } });
  await call("create-delegation", { body: { resource: "arn:aws:ecr:eu-west-1:1:repository/r" } });
  const folder = makeHandler(ending, 'console.log("a pod");\nsetInterval(() => {}, 60_000);\n');
  const args = `${process.execPath} handler.mjs`;
  const pod = await idOf(
    call("create-pod", { body: { name: "p", image: folder, args, cpu: { id: "cpu3g", vcpuCount: 1 } } }),
  );
  const showPod = async () => (await call("get-pod", { id: pod })).json;
  await until(async () => (await showPod()).status === "RUNNING", 30_000);
  expect((await call("list-pods")).text).toContain(pod);
  expect((await call("update-pod", { id: pod, body: { name: "q" } })).json.name).toBe("q");
  const podLogs = { podId: pod, maxWaitMs: 2_000 };
  await until(async () => (await mcp.call("stream-pod-logs", podLogs)).text.includes("a pod"), 30_000);
  await call("stream-pod-logs", podLogs);
  expect((await call("pod-action", { id: pod, body: { action: "stop" } })).json.status).toBe("EXITED");
  await call("delete-pod", { id: pod });
  for (const tool of Object.keys(mcpCalls.calls).filter((name) => name.endsWith("billing"))) await call(tool);

  await call("delete-endpoint", { id: endpoint });
  await call("delete-network-volume", { id: volume });
  await call("delete-registry", { id: registry });
  await call("delete-template", { id: template });
  expect([...said.keys()].sort()).toEqual([...mcp.tools].sort());
  expect(Object.keys(mcpCalls.calls).sort()).toEqual([...mcp.tools].sort());
});
