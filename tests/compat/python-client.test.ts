import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startServer, type TestServer } from "../harness.js";
import { type Deployment, deploy, handlerFolder, python, removeFolders, script, waitingEndpoint } from "./stock.js";

let server: TestServer;
let plain: Deployment;
let awaiting: Deployment;
let streaming: Deployment;
/** An endpoint without workers: its jobs wait. */
let idle: string;

beforeAll(async () => {
  server = await startServer();
  const warm = { workersMin: 1, idleTimeout: 120 };
  [plain, awaiting, streaming] = await Promise.all([
    deploy(server, "plain", warm),
    deploy(server, "awaiting", warm),
    deploy(server, "streaming", warm),
  ]);
  idle = await waitingEndpoint(server);
});

afterAll(async () => {
  await server?.end();
  removeFolders();
});

const numbered = (count: number) => Array.from({ length: count }, (_, number) => ({ number, padding: "" }));
const counts = { completed: 0, failed: 0, inProgress: 0, retried: 0 };
const noWorkers = { idle: 0, initializing: 0, paused: 0, ready: 0, running: 0, throttled: 0, unhealthy: 0 };

describe("the stock Python client", () => {
  const synced = (scenario: string, endpoint: string) => script(server, "sync_client", scenario, endpoint);

  it("submits a job, reads its state and its output", async () => {
    const found = await synced("run", plain.id);
    expect(found.id).toMatch(/^[0-9a-f-]{36}-u1$/);
    expect(["IN_QUEUE", "IN_PROGRESS", "COMPLETED"]).toContain(found.early);
    expect(found).toMatchObject({ output: { do: "echo", text: "wörd", number: 1.5 }, late: "COMPLETED" });
  });

  it("may let the client wrap the input", async () => {
    expect(await synced("run_bare", plain.id)).toEqual({ do: "echo", bare: true });
  });

  it("waits for outputs in one call, and gets no output of a failed job", async () => {
    expect(await synced("run_sync", plain.id)).toEqual({
      wrapped: { do: "echo", n: 2 },
      bare: { do: "echo", n: 3 },
      none: null,
      failed: null,
    });
  });

  it("sees that a job failed", async () => {
    expect(await synced("failed", plain.id)).toEqual({ output: null, status: "FAILED" });
  });

  it("may submit an empty input", async () => {
    expect(await synced("empty", idle)).toBe("IN_QUEUE");
  });

  it("streams every chunk once and in order", async () => {
    const found = await synced("stream", streaming.id);
    expect(found).toEqual({ chunks: ["one", 2, { three: 3 }, [4], null, ...numbered(200)], status: "COMPLETED" });
  });

  it("streams the chunks before a failure, and ends", async () => {
    expect(await synced("stream_failed", streaming.id)).toEqual({ chunks: ["one"], status: "FAILED" });
  });

  it("can cancel a running job twice", async () => {
    const found = await synced("cancel", awaiting.id);
    expect(found.reply).toMatchObject({ id: found.id, status: "CANCELLED" });
    expect(found.again).toMatchObject({ id: found.id, status: "CANCELLED" });
    expect(found.status).toBe("CANCELLED");
  });

  it("cancels a waiting job", async () => {
    const found = await synced("cancel_waiting", idle);
    expect(found).toMatchObject({
      before: "IN_QUEUE",
      reply: { status: "CANCELLED" },
      status: "CANCELLED",
      output: null,
    });
  });

  it("reads health, and purges by an empty request with a JSON content type", async () => {
    const own = await waitingEndpoint(server);
    const found = await synced("health_and_purge", own);
    expect(found.before).toMatchObject({ jobs: { ...counts, inQueue: 5 }, workers: noWorkers });
    expect(found.purged).toEqual({ removed: 5, status: "completed" });
    expect(found.after.jobs).toMatchObject({ ...counts, inQueue: 0 });
    expect(found.states).toEqual(Array(5).fill("CANCELLED"));
  });

  it("raises its usual errors for a wrong key and an unknown endpoint", async () => {
    expect(await synced("wrong_key", plain.id)).toEqual({ type: "RuntimeError", says_401: true });
    expect(await synced("unknown", plain.id)).toEqual({ type: "HTTPError", status: 404 });
  });
});

describe("the stock asyncio client", () => {
  const awaited = (scenario: string, endpoint: string) => script(server, "asyncio_client", scenario, endpoint);

  it("submits a job, waits for it and reads its output", async () => {
    const found = await awaited("run", plain.id);
    expect(found).toMatchObject({ output: { do: "echo", text: "wörd" }, late: "COMPLETED" });
  });

  it("streams every chunk once and in order", async () => {
    const found = await awaited("stream", streaming.id);
    expect(found).toEqual({ chunks: ["one", 2, { three: 3 }, ...numbered(50)], status: "COMPLETED" });
  });

  it("cancels a running job", async () => {
    const found = await awaited("cancel", awaiting.id);
    expect(found).toMatchObject({ reply: { id: found.id, status: "CANCELLED" }, status: "CANCELLED" });
  });

  it("reads health and purges", async () => {
    const own = await waitingEndpoint(server);
    const found = await awaited("health_and_purge", own);
    expect(found.before.jobs.inQueue).toBe(5);
    expect(found.purged).toEqual({ removed: 5, status: "completed" });
    expect(found.after.jobs.inQueue).toBe(0);
    expect(found.states).toEqual(Array(5).fill("CANCELLED"));
  });
});

describe("the stock management functions", () => {
  const managed = (scenario: string) => script(server, "api_client", scenario, handlerFolder("plain").dir, python());

  it("create a template and an endpoint that runs jobs", async () => {
    const { template, endpoint, output } = await managed("deploy_and_run");
    expect(template).toMatchObject({ containerDiskInGb: 5, isServerless: true, volumeInGb: 0 });
    expect(template.id).toMatch(/^[a-z0-9]{14}$/);
    expect(template.dockerArgs).toMatch(/ -u "?handler\.py"? ("two words"|'two words')$/);
    expect(template.env).toContainEqual({ key: "GREETING", value: "hello there" });
    expect(endpoint).toMatchObject({
      templateId: template.id,
      gpuIds: "AMPERE_16",
      idleTimeout: 10,
      scalerType: "QUEUE_DELAY",
      scalerValue: 4,
      workersMin: 0,
      workersMax: 1,
      gpuCount: 1,
      flashBootType: "FLASHBOOT",
    });
    expect(endpoint.id).toMatch(/^[a-z0-9]{14}$/);
    expect(output).toEqual({ GREETING: "hello there", words: ["two words"] });
  });

  it("list endpoints as they were set up, and change an endpoint's template", async () => {
    const found = await managed("list_and_retemplate");
    expect(found.changed).toEqual({ id: found.plain.id, templateId: found.second });
    expect(found.plain).toMatchObject({
      type: "QB",
      gpuIds: "AMPERE_16",
      idleTimeout: 5,
      scalerType: "QUEUE_DELAY",
      scalerValue: 4,
      workersMin: 0,
      workersMax: 0,
      gpuCount: 1,
      templateId: found.second,
      networkVolume: null,
    });
    expect(found.set_up).toMatchObject({
      gpuIds: "ADA_24",
      idleTimeout: 30,
      locations: "CZ,FR",
      scalerType: "REQUEST_COUNT",
      scalerValue: 2,
      templateId: found.first,
    });
    expect(Date.parse(found.plain.createdAt)).toBeGreaterThan(Date.now() - 120_000);
  });

  it("modify only the fields sent, and delete", async () => {
    const { id, modified, deleted, listed } = await managed("modify_and_delete");
    expect(modified).toEqual({ id, gpuIds: "AMPERE_24", name: "renamed", idleTimeout: 7, workersMax: 2 });
    expect(deleted).toEqual({ data: { deleteEndpoint: null } });
    expect(listed).toBe(false);
  });

  it("store registry credentials, assign them to templates, and delete unused ones", async () => {
    const { name, made, updated, template, in_use, deleted } = await managed("registry_auths");
    expect(made).toEqual({ id: expect.stringMatching(/^[a-z0-9]{14}$/), name });
    expect(updated).toEqual(made);
    expect(in_use).toContain(template);
    expect(deleted).toBe(true);
  });

  it("make, list, stop, resume and terminate pods", async () => {
    const found = await managed("pods");
    const { id } = found.made;
    expect(found.made).toMatchObject({ env: ["GREETING=hello there"], machine: null });
    expect(found.listed).toContain(id);
    expect(found.stopped).toMatchObject({ id, desiredStatus: "EXITED" });
    expect(found.resumed).toMatchObject({ id, desiredStatus: "RUNNING" });
    expect(found.shown).toMatchObject({ id, volumeInGb: 1, containerDiskInGb: 2, gpuCount: 1, podType: "RESERVED" });
    expect(found.left).not.toContain(id);
  });

  it("raise their own errors for refused calls", async () => {
    const found = await managed("refusals");
    expect(found["unknown template"]).toMatch(/template/i);
    expect(found["unknown tier"]).toMatch(/NO_SUCH_TIER|gpuIds/);
    expect(found["wrong key"]).toBe("AuthenticationError");
  });
});
