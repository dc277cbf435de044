import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { startDocker, type TestDocker } from "../../scripts/docker.mjs";
import { blocksOf } from "../docs/guide/blocks.js";
import { uniqueName } from "../e2e/resources.js";
import { call, root, startServer, type TestServer } from "../harness.js";

const image = "millrace-test/sdk:1";
const source = `
export default async function ({ wait = 0, env, say, exit }, job) {
  if (say) job.log.info(say);
  if (exit !== undefined) setTimeout(() => process.exit(exit), 0);
  await new Promise((over) => setTimeout(over, wait));
  return { from: process.env.RUNPOD_POD_ID, uid: process.getuid(), env: env && process.env[env] };
}
`;

let engine: TestDocker;
let server: TestServer;
beforeAll(async () => {
  engine = await startDocker();
  const folder = mkdtempSync(join(tmpdir(), "millrace-image-"));
  writeFileSync(join(folder, "handler.mjs"), source);
  engine.makeImage(image, {
    programs: [process.execPath, "/bin/sh", "/bin/cat"],
    files: { "/app/handler.mjs": join(folder, "handler.mjs"), "/app/worker": join(root, "packages/worker/dist") },
    changes: [`CMD ${JSON.stringify([process.execPath, "/app/worker/run-handler.js", "/app/handler.mjs"])}`],
  });
  rmSync(folder, { recursive: true });
  server = await startServer({ DOCKER_HOST: engine.host, MILLRACE_STOP_GRACE: "5" });
});
afterAll(async () => {
  await server?.end();
  await engine?.end();
});
afterEach(() => {
  if (process.env.SHOW_LOG) console.log(server.log());
});

/** Makes an endpoint that runs an image. */
async function makeEndpoint(template: Record<string, unknown> = {}, endpoint: Record<string, unknown> = {}) {
  const made = await call(server, "POST", "/v1/templates", {
    name: uniqueName(),
    imageName: image,
    isServerless: true,
    ...template,
  });
  expect(made.status, JSON.stringify(made.body)).toBe(200);
  const { body } = await call(server, "POST", "/v1/endpoints", { name: "a", templateId: made.body.id, ...endpoint });
  onTestFinished(async () => void (await call(server, "DELETE", `/sdk/v1/endpoints/${body.id}`)));
  return body.id as string;
}
const runsync = (endpoint: string, input: unknown) =>
  call(server, "POST", `/v2/${endpoint}/runsync?wait=60000`, { input }).then(({ body }) => body);
const run = async (endpoint: string, input: unknown) =>
  (await call(server, "POST", `/v2/${endpoint}/run`, { input })).body.id as string;
const statusOf = async (endpoint: string, job: string) =>
  (await call(server, "GET", `/v2/${endpoint}/status/${job}`)).body;
const ended = async (endpoint: string, job: string) =>
  (await call(server, "GET", `/v2/${endpoint}/status-sync/${job}?wait=60000`)).body;
const containerOf = (workerId: string) => `millrace-${workerId}`;
const running = () => engine.docker("ps", "-q", "--filter", "label=millrace.worker").split("\n").filter(Boolean);

describe("A worker in a container", () => {
  it("runs a job, with the template's environment and nothing of the server's", async () => {
    const endpoint = await makeEndpoint({ env: { GREETING: "hello" } });
    expect(await runsync(endpoint, { env: "GREETING" })).toMatchObject({
      status: "COMPLETED",
      output: { env: "hello" },
    });
    expect((await runsync(endpoint, { env: "MILLRACE_API_KEY" })).output.env).toBeUndefined();
  });

  // docs/guide/images.md
  it("is in the network that the guide makes, and reaches the server there", async (test) => {
    const [block] = blocksOf("images").filter(({ words }) => words.test === "tests/docker/containers.test.ts");
    const [create = "", start = ""] = (block?.text ?? "").split("\n");
    const [, words = "", name = ""] = /^docker (network create .*) (\S+)$/.exec(create) ?? [];
    const [, setting = ""] = /^(MILLRACE_DOCKER_NETWORK=\S+) npm start$/.exec(start) ?? [];
    expect(setting).toBe(`MILLRACE_DOCKER_NETWORK=${name}`);
    engine.docker(...words.split(" "), "--subnet", engine.subnet, name);
    const other = await startServer({
      DOCKER_HOST: engine.host,
      MILLRACE_DOCKER_NETWORK: name,
      MILLRACE_STOP_GRACE: "5",
    });
    test.onTestFinished(async () => {
      await other.end();
      engine.docker("network", "rm", name);
    });
    const settings = { name: uniqueName(), imageName: image, isServerless: true };
    const { body: template } = await call(other, "POST", "/v1/templates", settings);
    const { body } = await call(other, "POST", "/v1/endpoints", { name: "a", templateId: template.id });
    const job = await call(other, "POST", `/v2/${body.id}/runsync?wait=60000`, { input: {} });
    expect(job.body).toMatchObject({ status: "COMPLETED" });
    const [{ NetworkSettings }] = JSON.parse(engine.docker("inspect", containerOf(job.body.output.from)));
    expect(Object.keys(NetworkSettings.Networks)).toEqual([name]);
  });

  it("has no more privileges than it needs, and is found by its label", async () => {
    const endpoint = await makeEndpoint();
    const { output } = await runsync(endpoint, {});
    const [{ Config, HostConfig }] = JSON.parse(engine.docker("inspect", containerOf(output.from)));
    expect(Config.Labels).toMatchObject({ "millrace.worker": output.from });
    expect(HostConfig).toMatchObject({
      Init: true,
      Privileged: false,
      CapDrop: ["ALL"],
      SecurityOpt: ["no-new-privileges"],
    });
    expect(HostConfig.PidsLimit).toBeGreaterThan(0);
    expect(HostConfig.Mounts ?? []).toEqual([]);
  });

  it("is stopped and removed when it is idle for long enough", async () => {
    const endpoint = await makeEndpoint({}, { idleTimeout: 1 });
    await runsync(endpoint, {});
    await expect
      .poll(() => engine.docker("ps", "-aq", "--filter", "label=millrace.worker"), { timeout: 30_000 })
      .toBe("");
  });

  it("that is removed by someone else has its job given to another worker", async () => {
    const endpoint = await makeEndpoint();
    const job = await run(endpoint, { wait: 3_000 });
    await expect.poll(async () => (await statusOf(endpoint, job)).status, { timeout: 30_000 }).toBe("IN_PROGRESS");
    const { workerId } = await statusOf(endpoint, job);
    engine.docker("rm", "-f", containerOf(workerId));
    const end = await ended(endpoint, job);
    expect(end).toMatchObject({ status: "COMPLETED", retries: 1 });
    expect(end.workerId).not.toBe(workerId);
  });

  it("outlives a killed server, and the next server accepts its result", async () => {
    const endpoint = await makeEndpoint();
    const job = await run(endpoint, { wait: 4_000 });
    await expect.poll(async () => (await statusOf(endpoint, job)).status, { timeout: 30_000 }).toBe("IN_PROGRESS");
    const { workerId } = await statusOf(endpoint, job);
    await server.kill();
    await server.restart();
    expect(await ended(endpoint, job)).toMatchObject({ status: "COMPLETED", workerId, retries: 0 });
    expect(running()).toHaveLength(1);
  });

  it("continues while its engine is killed and restarted, and so do later jobs", async () => {
    const endpoint = await makeEndpoint();
    const job = await run(endpoint, { wait: 4_000 });
    await expect.poll(async () => (await statusOf(endpoint, job)).status, { timeout: 30_000 }).toBe("IN_PROGRESS");
    const { workerId } = await statusOf(endpoint, job);
    await engine.stop("SIGKILL");
    await engine.start();
    expect(await ended(endpoint, job)).toMatchObject({ status: "COMPLETED", workerId, retries: 0 });
    engine.docker("rm", "-f", containerOf(workerId));
    expect(await runsync(endpoint, {})).toMatchObject({ status: "COMPLETED" });
  });

  it("reaches the worker routes, and nothing else, on the bridge's own address", async () => {
    const endpoint = await makeEndpoint();
    await runsync(endpoint, {});
    const outside = `http://${engine.gateway}:${server.port}`;
    for (const path of ["/v1/endpoints", `/v2/${endpoint}/health`, "/metrics", "/healthz", `/v2/${endpoint}/run`]) {
      const reply = await fetch(outside + path, { headers: { authorization: `Bearer ${server.key}` } });
      expect([path, reply.status]).toEqual([path, 404]);
    }
    expect((await fetch(`${outside}/v2/${endpoint}/job-take/nobody?x=1`)).status).toBe(401);
  });
});

describe("A job whose worker cannot be started says why", () => {
  const waitingReason = async (endpoint: string) => {
    const job = await run(endpoint, {});
    let detail = "";
    await expect
      .poll(
        async () => {
          const { waitReason, waitDetail } = await statusOf(endpoint, job);
          detail = waitDetail;
          return waitReason;
        },
        { timeout: 60_000 },
      )
      .toMatch(/start_failed|crash_looping/);
    return detail;
  };

  it("if the image does not exist", async () => {
    const endpoint = await makeEndpoint({ imageName: "localhost:1/nowhere:1" });
    expect(await waitingReason(endpoint)).toMatch(
      /'localhost:1\/nowhere:1' is not on this machine and could not be pulled/,
    );
  });

  it("if its command is not in the image", async () => {
    const endpoint = await makeEndpoint({ dockerStartCmd: ["no-such-command"] });
    expect(await waitingReason(endpoint)).toMatch(/no-such-command/);
  });

  it("before there is a job, if the image is present and names no command", async () => {
    engine.makeImage("millrace-test/silent:1", { programs: ["/bin/sh"] });
    const template = { name: uniqueName(), imageName: "millrace-test/silent:1", isServerless: true };
    const refusal = await call(server, "POST", "/v1/templates", template);
    expect(refusal).toMatchObject({
      status: 400,
      body: { error: expect.stringMatching(/names no command: set docker/) },
    });
    const made = await call(server, "POST", "/v1/templates", { ...template, dockerStartCmd: ["/bin/sh"] });
    expect(made.status).toBe(200);
  });

  it("if it runs out of memory or exits at once", async () => {
    const endpoint = await makeEndpoint({ dockerStartCmd: ["/bin/sh", "-c", "echo the model is missing; exit 3"] });
    expect(await waitingReason(endpoint)).toMatch(/exit code 3: the model is missing/);
  });
});

it("a container's output can be read and followed while it lives, and is kept when it is removed", async () => {
  const endpoint = await makeEndpoint({}, { workersMax: 1, idleTimeout: 120 });
  const done = await runsync(endpoint, { say: "hello" });
  const path = `${server.url}/v1/workers/${done.workerId}/logs`;
  const headers = { authorization: `Bearer ${server.key}` };
  const texts = async (query: string) => (await fetch(`${path}?${query}`, { headers })).text();
  expect(await texts(`jobId=${done.id}`)).toContain(`"message":"hello"`);
  const following = texts("follow=true");
  const { id } = await runsync(endpoint, { say: "bye", exit: 3 });
  const heard = await following; // it ends with the container
  expect(heard).toContain("event: end");
  expect(heard.split("\n\n").filter((event) => event.includes("bye"))).toHaveLength(1);
  await expect.poll(() => engine.docker("ps", "-aq", "--filter", `name=${containerOf(done.workerId)}`)).toBe("");
  const kept = await texts(`jobId=${id}`);
  expect(kept).toContain(`"message":"bye"`);
  expect(await texts("tail=10000")).toContain("hello");
}, 120_000);
