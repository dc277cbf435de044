import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Endpoint } from "../../domain/endpoints/endpoint.js";
import { limits } from "../../limits/index.js";
import { deleteEndpoint, updateEndpoint } from "../../operations/endpoints/save-endpoint.js";
import { cancelJob } from "../../operations/jobs/change-job.js";
import { endWorker } from "../../operations/workers/worker-life.js";
import { plainHost } from "../../testing/facts-fixture.js";
import { Scene } from "../../testing/scene-fixture.js";

let scene: Scene;
let endpoint: Endpoint;
beforeEach(async () => {
  scene = await Scene.open();
});
afterEach(() => scene.close());

const workers = () => scene.workersOf(endpoint);
const wanted = () => workers().map(({ row }) => row.wanted);

describe("A worker is started", () => {
  it("for the first waiting job, and not without a job", async () => {
    endpoint = await scene.scaled();
    await scene.advance(60_000);
    expect(workers()).toEqual([]);
    await scene.submit(endpoint);
    await scene.advance(50);
    expect(workers()).toHaveLength(1);
    expect(workers()[0]?.row).toMatchObject({ version: 1, wanted: "running", startedAt: undefined });
  });

  it("never for lowPriority jobs, which run if there is a worker", async () => {
    endpoint = await scene.scaled();
    const [low] = await scene.submitMany(endpoint, 3, { input: {}, policy: { lowPriority: true } });
    await scene.advance(60_000);
    expect(workers()).toEqual([]);
    await scene.submit(endpoint);
    await scene.advance(50);
    expect(workers()).toHaveLength(1);
    expect(await scene.take(workers()[0]!)).toMatchObject([{ id: low }]);
  });

  it("for each job that has waited longer than scalerValue, up to workersMax", async () => {
    endpoint = await scene.scaled({ workersMax: 3 });
    await scene.submitMany(endpoint, 9);
    await scene.advance(3_900);
    expect(workers()).toHaveLength(1);
    await scene.advance(200);
    expect(workers()).toHaveLength(3);
    await scene.advance(60_000);
    expect(workers()).toHaveLength(3);
  });

  it("beside one whose handler still runs a cancelled job", async () => {
    endpoint = await scene.scaled({ workersMax: 2 });
    const first = await scene.worker(endpoint);
    await cancelJob(scene.parts, endpoint, await scene.running(endpoint, first));
    await scene.submit(endpoint);
    await scene.advance(3_900);
    expect(workers()).toHaveLength(1);
    await scene.advance(200);
    expect(workers()).toHaveLength(2);
  });

  it("for every scalerValue jobs if the scaler counts requests", async () => {
    endpoint = await scene.scaled({ scalerType: "REQUEST_COUNT", scalerValue: 4, workersMax: 10 });
    await scene.submitMany(endpoint, 9);
    await scene.advance(50);
    expect(workers()).toHaveLength(3);
  });

  it("until there are workersMin", async () => {
    endpoint = await scene.scaled({ workersMin: 2 });
    expect(workers()).toHaveLength(2);
  });

  it("while fewer than 1,000 workers of its user are not up yet, and one for an endpoint that has none", async () => {
    const impossible = { computeType: "CPU", vcpuCount: 512, workersMin: 700, workersMax: 700 } as const;
    endpoint = await scene.scaled(impossible);
    const others = [await scene.endpoint(impossible), await scene.endpoint(impossible)];
    const { caller } = await scene.stranger();
    const { id: templateId } = await scene.template({ imageName: "alpine:3" }, caller);
    const theirs = await scene.endpoint({ workersMin: 2, templateId }, caller);
    const counts = () => [endpoint, ...others, theirs].map((each) => scene.workersOf(each).length);
    await scene.advance(50);
    expect(counts()).toEqual([700, 300, 1, 2]);
    await updateEndpoint(scene.parts, scene.admin, endpoint, { workersMin: 0, workersMax: 0 });
    for (const worker of workers()) await endWorker(scene.parts, worker, {}, "stopped", { isBlameless: true });
    await scene.advance(limits.netMs + 50);
    expect(counts()).toEqual([0, 700, 300, 2]);
  });

  it("when workersMax is raised from 0", async () => {
    endpoint = await scene.scaled({ workersMax: 0 });
    await scene.submitMany(endpoint, 1);
    await scene.advance(10_000);
    expect(workers()).toEqual([]);
    await updateEndpoint(scene.parts, scene.admin, endpoint, { workersMax: 1 });
    await scene.advance(50);
    expect(workers()).toHaveLength(1);
  });

  it("for an endpoint that was made after the loop had begun", async () => {
    endpoint = await scene.scaled();
    endpoint = await scene.endpoint();
    await scene.submit(endpoint);
    await scene.advance(50);
    expect(workers()).toHaveLength(1);
  });

  it("even if the check of another endpoint has failed", async () => {
    endpoint = await scene.scaled();
    const other = await scene.endpoint();
    vi.spyOn(scene.stores.decisions, "record").mockRejectedValueOnce(new Error("the disk is full"));
    await Promise.all([scene.submit(endpoint), scene.submit(other)]);
    await scene.advance(60_000);
    expect([workers().length, scene.workersOf(other).length]).toEqual([1, 1]);
  });

  it("for a job that waits, and no further worker when that one comes up", async () => {
    endpoint = await scene.scaled({ workersMax: 5, scalerValue: 1 });
    await scene.submit(endpoint);
    await scene.advance(50);
    await scene.take(workers()[0]!);
    await scene.submit(endpoint);
    await scene.advance(1_500);
    expect(workers()).toHaveLength(2);
    await scene.take(workers()[1]!);
    await scene.advance(100);
    expect(workers()).toHaveLength(2);
  });

  it("only if the endpoint's locations include this host", async () => {
    await scene.close();
    scene = await Scene.open({ here: { facts: () => ({ ...plainHost, location: "CZ" }) } });
    endpoint = await scene.scaled({ locations: "US", workersMin: 1 });
    await scene.submit(endpoint);
    await scene.advance(60_000);
    expect(workers()).toEqual([]);
    await updateEndpoint(scene.parts, scene.admin, endpoint, { locations: "US,CZ" });
    await scene.advance(50);
    expect(workers()).toHaveLength(1);
  });

  it("for jobs that waited when the server restarted", async () => {
    endpoint = await scene.endpoint();
    await scene.submit(endpoint);
    scene = await scene.restart();
    scene.run(scene.loops.scale());
    await scene.advance(50);
    expect(workers()).toHaveLength(1);
  });
});

describe("An idle worker is stopped", () => {
  it("when it has been idle for idleTimeout, and not before", async () => {
    endpoint = await scene.scaled({ idleTimeout: 30 });
    await scene.submit(endpoint);
    await scene.advance(50);
    const [worker] = workers();
    const [job] = await scene.take(worker!);
    await scene.advance(120_000);
    await scene.done(worker!, job!.id);
    await scene.advance(29_900);
    expect(wanted()).toEqual(["running"]);
    await scene.advance(200);
    expect(wanted()).toEqual(["stopped"]);
    expect(worker!.row.killAt).toBe(worker!.row.stopAt! + 30_000);
  });

  it("the longest idle first", async () => {
    endpoint = await scene.scaled({ idleTimeout: 10, workersMax: 5 });
    const [first, second, third] = [
      await scene.worker(endpoint),
      await scene.worker(endpoint),
      await scene.worker(endpoint),
    ] as const;
    for (const worker of [second, third, first]) {
      await scene.idle(worker);
      await scene.advance(2_000);
    }
    await scene.advance(4_100);
    expect(wanted()).toEqual(["running", "stopped", "running"]);
    await scene.advance(2_000);
    expect(wanted()).toEqual(["running", "stopped", "stopped"]);
    await scene.advance(2_000);
    expect(wanted()).toEqual(["stopped", "stopped", "stopped"]);
  });

  it("and not if a job came for it while another worker was stopped: it runs the job first", async () => {
    endpoint = await scene.scaled({ idleTimeout: 1, workersMax: 2 });
    await scene.idle(await scene.worker(endpoint));
    const second = await scene.worker(endpoint);
    const poll = scene.poll(second);
    await scene.advance(900);
    const { change } = scene.stores.workers;
    let id = "";
    vi.spyOn(scene.stores.workers, "change").mockImplementationOnce(async (...made) => {
      const isChanged = await change(...made);
      id = await scene.submit(endpoint);
      await scene.until(() => poll.jobs !== undefined);
      return isChanged;
    });
    await scene.advance(300);
    expect(poll.jobs).toMatchObject([{ id }]);
    expect(wanted()).toEqual(["stopped", "closed"]);
    await scene.done(second, id);
    await scene.advance(50);
    expect(second.row.wanted).toBe("stopped");
    expect(await scene.state(endpoint, id)).toBe("COMPLETED");
  });

  it("down to workersMin", async () => {
    endpoint = await scene.scaled({ idleTimeout: 1, workersMin: 1 });
    await scene.idle(workers()[0]!);
    await scene.idle(await scene.worker(endpoint));
    await scene.advance(60_000);
    expect(wanted().filter((each) => each === "running")).toHaveLength(1);
  });

  it("only after its full idle time following a restart of the server", async () => {
    endpoint = await scene.endpoint({ idleTimeout: 60 });
    const worker = await scene.worker(endpoint);
    await scene.idle(worker);
    await scene.advance(600_000);
    await scene.done(worker, await scene.running(endpoint, worker));
    scene = await scene.restart();
    scene.run(scene.loops.scale());
    await scene.advance(50_000);
    expect(wanted()).toEqual(["running"]);
  });

  it("at once if workersMax is 0; a busy worker after its job, and waiting jobs stay", async () => {
    endpoint = await scene.scaled({ idleTimeout: 600, workersMax: 5 });
    const [idler, busy] = [await scene.worker(endpoint), await scene.worker(endpoint)] as const;
    await scene.idle(idler);
    const id = await scene.running(endpoint, busy);
    const waiting = await scene.submit(endpoint);
    await updateEndpoint(scene.parts, scene.admin, endpoint, { workersMax: 0 });
    await scene.advance(50);
    expect([idler.row.wanted, busy.row.wanted]).toEqual(["stopped", "closed"]);
    await scene.done(busy, id);
    await scene.advance(50);
    expect(busy.row.wanted).toBe("stopped");
    expect(await scene.status(endpoint, waiting)).toMatchObject({ waitReason: "workers_max_zero" });
  });

  it("with all other workers when its endpoint is deleted", async () => {
    endpoint = await scene.scaled({ workersMax: 5 });
    const [starting, busy] = [await scene.worker(endpoint), await scene.worker(endpoint)] as const;
    await scene.running(endpoint, busy);
    await deleteEndpoint(scene.parts, scene.admin, endpoint, { setToZero: true });
    await scene.advance(50);
    expect([starting.row.wanted, busy.row.wanted]).toEqual(["stopped", "stopped"]);
  });
});

it("With nothing to do the scaler does nothing", async () => {
  endpoint = await scene.scaled();
  const before = scene.clock.wakes;
  await scene.advance(24 * 3_600_000);
  expect(scene.clock.wakes - before).toBeLessThan(10);
});
