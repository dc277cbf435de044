import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startDocker, type TestDocker } from "../../scripts/docker.mjs";
import { makeNodeImage } from "../../scripts/images.mjs";
import { type Ending, endWith } from "../e2e/handlers.js";
import { coldStartsOf, complete, frozen, inState, phasesOf, save, workersOf } from "../e2e/life.js";
import { reach, statusOf, submit } from "../e2e/wire.js";
import { makeEndpoint, startServer, type TestServer, until } from "../harness.js";

const image = "millrace-test/life:1";
let engine: TestDocker;
let server: TestServer;
beforeAll(async () => {
  engine = await startDocker();
  const folder = mkdtempSync(join(tmpdir(), "millrace-image-"));
  const handler = join(folder, "handler.mjs");
  writeFileSync(handler, "let n = 0;\nexport default () => ({ n: ++n, host: process.env.RUNPOD_POD_ID });");
  makeNodeImage(engine, image, { handler, programs: ["/bin/sh"] });
  rmSync(folder, { recursive: true });
  server = await startServer({ DOCKER_HOST: engine.host, MILLRACE_RATE_LIMITS: "off", MILLRACE_STOP_GRACE: "5" });
});
afterAll(async () => {
  await server?.end();
  await engine?.end();
});

async function make(test: Ending, settings: Record<string, unknown> = {}, template: Record<string, unknown> = {}) {
  const endpoint = await makeEndpoint(server, image, { computeType: "CPU", workersMax: 1, ...settings }, template);
  endWith(test, server, endpoint);
  return endpoint;
}
const isPaused = (worker: string) => engine.docker("inspect", "-f", "{{.State.Paused}}", `millrace-${worker}`);

describe.concurrent("a worker in a container", () => {
  it("shows each step of its start, including the image and the container", async (test) => {
    const endpoint = await make(test);
    await complete(server, endpoint);
    const [worker] = await until(async () => {
      const workers = await workersOf(server, endpoint);
      return phasesOf(workers[0]).includes("first output") && workers;
    });
    const phases = ["image ready", "container created", "process started", "first take", "first output"];
    expect(phasesOf(worker)).toEqual(["asked for", ...phases]);
    const cold = await coldStartsOf(server, endpoint);
    for (const step of ["imageMs", "createMs", "startMs", "readyMs", "totalMs"]) expect(cold[step]).toBeDefined();
  });
});

describe.concurrent("a container that fails at its start is reported with its cause:", () => {
  it.for([
    {
      it: "a command that its image lacks",
      template: { dockerStartCmd: ["no-such-command"] },
      exit: { cause: "image", note: expect.stringMatching(/no-such-command/) },
    },
    {
      it: "a shell command that its image lacks",
      template: { dockerStartCmd: ["/bin/sh", "-c", "no-such-command"] },
      exit: { code: 127, cause: "image", note: expect.stringMatching(/no-such-command.*not found/s) },
    },
    {
      it: "an image that does not exist",
      template: { imageName: "localhost:1/nowhere:1" },
      exit: { cause: "image", note: expect.stringMatching(/localhost:1\/nowhere:1.*could not be pulled/) },
    },
    {
      it: "more memory than it was given",
      settings: { instanceIds: ["cpu3c-1-1"] },
      template: { dockerStartCmd: ["/bin/sh", "-c", "a=0123456789abcdef; while :; do a=$a$a; done"] },
      exit: { cause: "memory", note: expect.stringMatching(/out of memory/) },
    },
    {
      it: "exit code 137, although the server did not kill it",
      template: { dockerStartCmd: ["/bin/sh", "-c", "kill -9 $$"] },
      exit: { cause: "memory", note: expect.stringMatching(/137/) },
    },
    {
      it: "no CUDA",
      template: {
        dockerStartCmd: ["/bin/sh", "-c", "echo 'AssertionError: Torch not compiled with CUDA enabled'; exit 1"],
      },
      exit: { code: 1, cause: "gpu", note: expect.stringMatching(/not compiled with CUDA/) },
    },
  ])("$it", async ({ settings = {}, template, exit }, test) => {
    const endpoint = await make(test, settings, template);
    const job = await submit(server, endpoint);
    const ended = await inState(server, endpoint, "ended", { withinMs: 40_000 });
    expect(ended.exit).toMatchObject(exit);
    expect(ended.why).toBe(ended.exit.note);
    const told = await until(async () => {
      const body = await statusOf(server, endpoint, job);
      return /start_failed|crash_looping/.test(body.waitReason) && body;
    });
    expect(told.waitDetail).toContain(ended.exit.note);
    await save(server, endpoint, { workersMax: 0 });
    await reach(server, endpoint, job, "IN_QUEUE");
  });
});

describe("a container that FlashBoot has paused", () => {
  it("keeps its memory across a crash of the server, and continues", async (test) => {
    const endpoint = await make(test, { flashboot: true, idleTimeout: 1 });
    const { workerId } = await complete(server, endpoint);
    await frozen(server, endpoint);
    await expect.poll(() => isPaused(workerId), { timeout: 10_000 }).toBe("true");
    await server.kill();
    await server.restart();
    expect(await workersOf(server, endpoint)).toMatchObject([{ id: workerId, state: "paused" }]);
    expect(await complete(server, endpoint)).toMatchObject({ workerId, output: { n: 2 }, retries: 0 });
    expect(isPaused(workerId)).toBe("false");
    await frozen(server, endpoint);
    await save(server, endpoint, { flashboot: false });
    await inState(server, endpoint, "ended", { id: workerId });
  });
});
