import { expect, it } from "vitest";
import { makeHandler } from "../e2e/handlers.js";
import { makeEndpoint, call as request, startServer, until } from "../harness.js";
import { startMcp } from "./mcp.js";
import { mcp3Calls } from "./mcp-calls.js";

const title = "Every tool of version 3 of the stock MCP server does over REST %s what the table of compatibility says";

it.each(["v1", "v2"] as const)(title, { timeout: 180_000 }, async (version) => {
  const undos: (() => void)[] = [];
  const ending = { onTestFinished: (undo: () => void) => void undos.unshift(undo) };
  const server = await startServer({ MILLRACE_PUBLIC_CATALOG: "on", MILLRACE_RATE_LIMITS: "off" });
  const mcp = await startMcp(server, 3, {
    RUNPOD_REST_VERSION: version,
    RUNPOD_REST_API_URL: `${server.url}/sdk/v1`,
    RUNPOD_REST_V2_API_URL: `${server.url}/sdk/v2`,
  });
  const { calls } = mcp3Calls[version];
  const called = new Set<string>();
  /** Calls a tool, and checks that its outcome is the table's. The client reports some failures only in the text. */
  const call = async (tool: string, args: object = {}) => {
    const reply = await mcp.call(tool, args);
    called.add(tool);
    expect(reply.isError || reply.json?.error !== undefined, `${tool}: ${reply.text}`).toBe(calls[tool] !== "works");
    return reply;
  };
  const idOf = async (tool: string, args: object): Promise<string> => (await call(tool, args)).json.id;
  try {
    const handler = 'console.log("hello");\nexport default async function* () { yield 1; yield 2; }\n';
    const running = await makeEndpoint(server, makeHandler(ending, handler), { workersMin: 1, workersMax: 1 });

    const templateId = await idOf("create-template", { name: "t", imageName: "alpine:3", isServerless: true });
    expect((await call("list-templates")).text).toContain(templateId);
    await call("get-template", { templateId });
    const template = await call("update-template", { templateId, imageName: "alpine:3.20" });
    expect(template.text).toContain("alpine:3.20");
    const networkVolumeId = await idOf("create-network-volume", { name: "v", size: 10, dataCenterId: "EU-RO-1" });
    await call("list-network-volumes");
    await call("get-network-volume", { networkVolumeId });
    expect((await call("update-network-volume", { networkVolumeId, size: 20 })).json.size).toBe(20);
    const auth = { name: "r", username: "u", password: "p" };
    const containerRegistryAuthId = await idOf("create-container-registry-auth", auth);
    await call("list-container-registry-auths");
    await call("get-container-registry-auth", { containerRegistryAuthId });

    const workers = { name: "e", gpuCount: 1, workersMin: 0, workersMax: 0 };
    const made =
      version === "v1"
        ? { ...workers, templateId, computeType: "GPU", gpuTypeIds: ["NVIDIA L4"] }
        : { ...workers, imageName: "alpine:3", gpuPoolIds: ["AMPERE_24"] };
    const endpointId = await idOf("create-endpoint", made);
    expect((await call("list-endpoints", { includeTemplate: true, includeWorkers: true })).text).toContain(endpointId);
    await call("update-endpoint", { endpointId, name: "renamed" });
    expect((await call("get-endpoint", { endpointId })).json.name).toBe("renamed");
    await call("set-endpoint-gpus", { endpointId, pools: ["ADA_24"] });
    await call("list-endpoint-releases", { endpointId });

    const jobId = await idOf("run-endpoint", { endpointId, input: { a: 1 } });
    expect((await call("get-job-status", { endpointId, jobId })).json.status).toBe("IN_QUEUE");
    await call("endpoint-health", { endpointId });
    await call("cancel-job", { endpointId, jobId });
    await call("retry-job", { endpointId, jobId });
    await call("purge-endpoint-queue", { endpointId });
    expect((await call("runsync-endpoint", { endpointId: running, input: {} })).json.status).toBe("COMPLETED");
    const streamed = await idOf("run-endpoint", { endpointId: running, input: {} });
    const stream = (await call("stream-job", { endpointId: running, jobId: streamed })).json;
    expect(stream.stream.map(({ output }: { output: number }) => output)).toEqual([1, 2]);
    const listed = await request(server, "GET", `/sdk/v2/serverless/${running}/workers`);
    const logs = { endpointId: running, workerId: listed.body.workers[0].id, maxWaitMs: 2_000 };
    if (version === "v2")
      await until(async () => (await mcp.call("stream-worker-logs", logs)).text.includes("hello"), 30_000);
    await call("stream-worker-logs", logs);
    await call("list-endpoint-workers", { endpointId: running });

    await call("list-gpu-types", { includeAvailability: true });
    await call("get-gpu-type", { gpuTypeId: "NVIDIA L4" });
    await call("list-cpu-types");
    await call("get-cpu-type", { cpuTypeId: "cpu3c" });
    await call("list-data-centers");
    await call("get-data-center", { dataCenterId: "EU-RO-1" });
    await call("get-capacity", { includeUnavailable: true });
    await call("list-hub-repos");
    await call("deploy-hub-repo", { repo: "someone/something" });
    await call("list-public-endpoints");

    // Over v1 the client sends only an image: there is no engine here, so that this pod waits for a host.
    const podImage = makeHandler(ending, 'console.log("a pod");\nsetInterval(() => {}, 60_000);\n');
    const podTemplate = { name: "pods", imageName: podImage, dockerStartCmd: [process.execPath, "handler.mjs"] };
    const ofPod = await request(server, "POST", "/v1/templates", podTemplate);
    const image = version === "v1" ? { imageName: "alpine:3" } : { templateId: ofPod.body.id };
    const podId = await idOf("create-pod", { name: "p", ...image, gpuTypeIds: ["NVIDIA L4"], gpuCount: 1 });
    expect((await call("list-pods", { includeMachine: true })).text).toContain(podId);
    await call("get-pod", { podId, includeMachine: true });
    expect((await call("update-pod", { podId, name: "q" })).json.name).toBe("q");
    const podLogs = { podId, maxWaitMs: 2_000 };
    if (version === "v2")
      await until(async () => (await mcp.call("stream-pod-logs", podLogs)).text.includes("a pod"), 30_000);
    await call("stream-pod-logs", podLogs);
    for (const tool of ["restart-pod", "stop-pod", "start-pod", "delete-pod"]) await call(tool, { podId });

    await call("list-registry-delegations");
    await call("create-registry-delegation", { resource: "arn:aws:ecr:eu-west-1:1:repository/r" });
    await call("delete-registry-delegation", { delegationId: "none" });
    for (const scope of ["all", "pods", "serverless", "endpoints"]) await call("get-billing", { scope });
    await call("delete-endpoint", { endpointId });
    await call("delete-template", { templateId });
    await call("delete-network-volume", { networkVolumeId });
    await call("delete-container-registry-auth", { containerRegistryAuthId });
    expect([...called].sort()).toEqual([...mcp.tools].sort());
    expect(Object.keys(calls).sort()).toEqual([...mcp.tools].sort());
  } finally {
    mcp.end();
    await server.end();
    for (const undo of undos) undo();
  }
});
