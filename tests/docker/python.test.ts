import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { startDocker, type TestDocker } from "../../scripts/docker.mjs";
import { makePythonImage } from "../../scripts/images.mjs";
import { venv } from "../compat/stock.js";
import { complete, frozen, save } from "../e2e/life.js";
import { uniqueName } from "../e2e/resources.js";
import { call, startServer, type TestServer } from "../harness.js";

const handler = `
import runpod

def handler(job):
    if job["input"].get("fail"):
        raise ValueError("told to")
    return {"echo": job["input"]["text"], "id": job["id"]}

def stream(job):
    for n in range(3):
        yield {"n": n}

runpod.serverless.start({"handler": handler})
`;

let engine: TestDocker;
let server: TestServer;
let endpoint: string;
beforeAll(async () => {
  engine = await startDocker();
  const folder = mkdtempSync(join(tmpdir(), "millrace-image-"));
  writeFileSync(join(folder, "handler.py"), handler);
  const image = { handler: join(folder, "handler.py"), venv: venv() };
  const imageName = makePythonImage(engine, "millrace-test/python:1", image);
  rmSync(folder, { recursive: true });
  server = await startServer({ DOCKER_HOST: engine.host, MILLRACE_STOP_GRACE: "5" });
  const template = await call(server, "POST", "/v1/templates", { name: uniqueName(), imageName, isServerless: true });
  endpoint = (await call(server, "POST", "/v1/endpoints", { name: "stock", templateId: template.body.id })).body.id;
});
afterAll(async () => {
  await server?.end();
  await engine?.end();
});

it("with FlashBoot the stock Python worker is frozen in its container with its pinging process", async () => {
  await save(server, endpoint, { flashboot: true, idleTimeout: 1, workersMax: 1 });
  const { workerId } = await complete(server, endpoint, { text: "before" });
  await frozen(server, endpoint);
  await expect
    .poll(() => engine.docker("inspect", "-f", "{{.State.Status}}", `millrace-${workerId}`), { timeout: 10_000 })
    .toBe("paused");
  const again = await complete(server, endpoint, { text: "after" });
  expect(again).toMatchObject({ workerId, output: { echo: "after" }, retries: 0 });
  await save(server, endpoint, { flashboot: false, idleTimeout: 5 });
}, 180_000);

it("the stock Python worker runs unchanged in a container, and its errors are reported unchanged", async () => {
  const run = async (input: unknown) =>
    (await call(server, "POST", `/v2/${endpoint}/runsync?wait=120000`, { input })).body;
  const done = await run({ text: "grüße" });
  expect(done).toMatchObject({ status: "COMPLETED", output: { echo: "grüße", id: done.id } });
  expect(await run({ fail: true })).toMatchObject({ status: "FAILED", error: expect.stringContaining("told to") });
  expect(await run({ text: "after" })).toMatchObject({ status: "COMPLETED" });
  const reply = await fetch(`${server.url}/v1/workers/${done.workerId}/logs?format=ndjson&jobId=${done.id}`, {
    headers: { authorization: `Bearer ${server.key}` },
  });
  const lines = (await reply.text()).trim().split("\n");
  expect(lines.map((line) => JSON.parse(line))).toContainEqual(
    expect.objectContaining({ workerId: done.workerId, jobId: done.id, level: "INFO" }),
  );
  await call(server, "DELETE", `/sdk/v1/endpoints/${endpoint}`);
  // SIGTERM reaches it through the init process: it exits by itself, within its grace.
  await expect.poll(() => engine.docker("ps", "-aq"), { timeout: 20_000 }).toBe("");
}, 180_000);
