import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { FakeNvidiaSmi, fakeGpu } from "../gpu/fake-nvidia-smi.js";
import { call, startServer, type TestServer, until } from "../harness.js";
import { makeRunning } from "./handlers.js";
import { allWorkersOf, complete, frozen, inState, letterOf, phasesOf, save, workerOf, workersOf } from "./life.js";
import { makePuppets } from "./puppet.js";
import { type Body, healthOf, reach, reachTime, submit } from "./wire.js";

const settings = { flashboot: true, idleTimeout: 1, workersMax: 1 };
/** Returns its process id and how many jobs that process has run. */
const counting = "let n = 0;\nexport default () => ({ pid: process.pid, n: ++n });";

let server: TestServer;
let fake: FakeNvidiaSmi;
beforeAll(async () => {
  fake = new FakeNvidiaSmi({ gpus: [fakeGpu(0), fakeGpu(1, "NVIDIA A40", 46_068)] });
  server = await startServer({ MILLRACE_RATE_LIMITS: "off", PATH: fake.path });
});
afterAll(async () => {
  await server?.end();
  fake?.remove();
});

const cpu = { computeType: "CPU" };

describe.concurrent("with FlashBoot an idle worker", () => {
  it("is frozen after its idle time, and resumes with its memory unchanged", async (test) => {
    const endpoint = await makeRunning(test, server, { ...settings, ...cpu }, counting);
    const { output, workerId } = await complete(server, endpoint);
    expect(output.n).toBe(1);
    const paused = await frozen(server, endpoint, output.pid);
    expect(paused).toMatchObject({
      id: workerId,
      state: "paused",
      desiredStatus: "RUNNING",
      why: expect.stringContaining("1 s"),
    });
    expect((await healthOf(server, endpoint)).workers).toMatchObject({ paused: 1, idle: 0, ready: 0 });
    expect(await complete(server, endpoint)).toMatchObject({ workerId, output: { pid: output.pid, n: 2 }, retries: 0 });
    expect(letterOf(output.pid)).not.toBe("T");
    const phases = phasesOf(await workerOf(server, workerId));
    expect(phases.slice(-2)).toEqual(["paused", "resumed"]);
    await frozen(server, endpoint);
    expect(await complete(server, endpoint)).toMatchObject({ workerId, output: { n: 3 } });
    expect(await allWorkersOf(server, endpoint)).toHaveLength(1);
  });

  it("is stopped if FlashBoot is turned off again", async (test) => {
    const endpoint = await makeRunning(test, server, { ...settings, ...cpu }, counting);
    const { output } = await complete(server, endpoint);
    const { id } = await frozen(server, endpoint);
    await save(server, endpoint, { flashboot: false });
    await inState(server, endpoint, "ended", { id });
    expect(letterOf(output.pid)).toBeUndefined();
  });

  it("is not frozen below workersMin, and a frozen worker is resumed for it", async (test) => {
    const endpoint = await makeRunning(test, server, { ...settings, ...cpu }, counting);
    await complete(server, endpoint);
    const { id } = await frozen(server, endpoint);
    await save(server, endpoint, { workersMin: 1 });
    await inState(server, endpoint, "idle", { id });
    await reachTime(Date.now() + 2_000);
    expect(await workersOf(server, endpoint)).toMatchObject([{ id, state: "idle" }]);
  });

  it("that does not answer when it is resumed is replaced, and another runs its job", async (test) => {
    const { id: endpoint, puppet } = await makePuppets(test, server, { ...settings, ...cpu, workersMin: 0 });
    const first = await submit(server, endpoint);
    const silent = await puppet();
    expect((await silent.take()).body.id).toBe(first);
    await silent.done(first, { output: 1 });
    await silent.ping();
    await silent.take(); // held until it is frozen
    await frozen(server, endpoint, silent.pid);
    const job = await submit(server, endpoint);
    const submittedAt = Date.now();
    await until(() => letterOf(silent.pid) !== "T");
    process.kill(-silent.pid, "SIGSTOP");
    const other = await puppet(1);
    expect(Date.now() - submittedAt).toBeGreaterThan(4_500);
    expect((await other.take()).body.id).toBe(job);
    await other.done(job, { output: 2 });
    expect(await reach(server, endpoint, job, "COMPLETED")).toMatchObject({
      output: 2,
      workerId: other.id,
      retries: 0,
    });
    const lost = await inState(server, endpoint, "ended", { id: silent.id });
    expect(lost.exit.note).toMatch(/resumed and said nothing for 5 s/);
    expect(silent.alive()).toBe(false);
    expect((await healthOf(server, endpoint)).workers.unhealthy).toBe(0);
  });

  it("that is killed while it is frozen is recorded, and the next job gets another worker", async (test) => {
    const endpoint = await makeRunning(test, server, { ...settings, ...cpu }, counting);
    const { output, workerId } = await complete(server, endpoint);
    await frozen(server, endpoint, output.pid);
    process.kill(output.pid, "SIGKILL");
    await inState(server, endpoint, "ended", { id: workerId });
    const next = await complete(server, endpoint);
    expect(next).toMatchObject({ output: { n: 1 }, retries: 0 });
    expect(next.workerId).not.toBe(workerId);
  });

  it("gives way to a worker that needs its processors", async (test) => {
    const all = await makeRunning(test, server, { ...settings, ...cpu, vcpuCount: 2 }, counting);
    const rival = await makeRunning(test, server, { ...cpu, vcpuCount: 2, workersMax: 1 }, counting);
    const { output } = await complete(server, all);
    const { id } = await frozen(server, all);
    await complete(server, rival);
    expect((await inState(server, all, "ended", { id })).why).toBe("another worker needs what it holds");
    expect(letterOf(output.pid)).toBeUndefined();
  });

  it("outlives a killed server, still frozen, and resumes with the next server", async (test) => {
    const own = await startServer({ MILLRACE_RATE_LIMITS: "off" });
    test.onTestFinished(() => own.end());
    const endpoint = await makeRunning(test, own, settings, counting);
    const { output, workerId } = await complete(own, endpoint);
    await frozen(own, endpoint, output.pid);
    await own.kill();
    expect(letterOf(output.pid)).toBe("T");
    await own.restart();
    expect(await workersOf(own, endpoint)).toMatchObject([{ id: workerId, state: "paused" }]);
    expect(letterOf(output.pid)).toBe("T");
    expect(await complete(own, endpoint)).toMatchObject({ workerId, output: { pid: output.pid, n: 2 }, retries: 0 });
  });

  it("gives its memory back after the configured time, and no worker is started instead", async (test) => {
    const own = await startServer({ MILLRACE_RATE_LIMITS: "off", MILLRACE_FLASHBOOT_KEEP: "2" });
    test.onTestFinished(() => own.end());
    const endpoint = await makeRunning(test, own, settings, counting);
    const { output } = await complete(own, endpoint);
    const { id, timeline } = await frozen(own, endpoint);
    const ended = await inState(own, endpoint, "ended", { id });
    const at = (of: Body, phase: string) => Date.parse(of.find((each: Body) => each.phase === phase).at);
    expect(at(ended.timeline, "asked to stop") - at(timeline, "paused")).toBeGreaterThanOrEqual(2_000);
    expect(letterOf(output.pid)).toBeUndefined();
    expect(await allWorkersOf(own, endpoint)).toHaveLength(1);
  });

  it("gives its GPU to a worker that can get no other GPU", async (test) => {
    const onL4 = { gpuTypeIds: ["NVIDIA L4"], workersMax: 1 };
    const holder = await makeRunning(test, server, { ...settings, ...onL4 }, counting);
    const other = await makeRunning(test, server, { ...settings, gpuTypeIds: ["NVIDIA A40"] }, counting);
    const rival = await makeRunning(test, server, onL4, counting);
    await Promise.all([complete(server, holder), complete(server, other)]);
    const { id, gpus } = await frozen(server, holder);
    expect(gpus).toMatchObject([{ id: fakeGpu(0).uuid }]);
    const bystander = await frozen(server, other);
    await complete(server, rival);
    expect((await workersOf(server, rival))[0].gpus).toEqual(gpus);
    await inState(server, holder, "ended", { id });
    expect(await workersOf(server, other)).toMatchObject([{ id: bystander.id, state: "paused" }]);
  });
});

it("REST and GraphQL show the same FlashBoot setting", async (test) => {
  const endpoint = await makeRunning(test, server, { ...cpu, flashboot: true });
  const query = "{ myself { endpoints { id flashBootType } } }";
  const shown = async () => {
    const { body } = await call(server, "POST", "/graphql", { query });
    const { flashboot, flashBootType } = (await call(server, "GET", `/v1/endpoints/${endpoint}`)).body;
    const [found] = body.data.myself.endpoints.filter(({ id }: Body) => id === endpoint);
    return [flashboot, flashBootType, found.flashBootType];
  };
  expect(await shown()).toEqual([true, "FLASHBOOT", "FLASHBOOT"]);
  await save(server, endpoint, { name: "renamed" });
  expect(await shown()).toEqual([true, "FLASHBOOT", "FLASHBOOT"]);
  await save(server, endpoint, { flashboot: false });
  expect(await shown()).toEqual([false, "OFF", "OFF"]);
});
