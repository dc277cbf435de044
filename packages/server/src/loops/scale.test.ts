import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Endpoint } from "../domain/endpoints/endpoint.js";
import type { LiveWorker } from "../memory/registry.js";
import { deleteEndpoint, updateEndpoint } from "../operations/endpoints/save-endpoint.js";
import { showDecisions } from "../operations/show-resources.js";
import { endWorker } from "../operations/workers/worker-life.js";
import { plainHost } from "../testing/facts-fixture.js";
import { Scene } from "../testing/scene-fixture.js";

let scene: Scene;
let endpoint: Endpoint;
beforeEach(async () => {
  scene = await Scene.open();
});
afterEach(() => scene.close());

/** Makes an endpoint that the scaler watches. */
async function scaled(more: Parameters<Scene["endpoint"]>[0] = {}): Promise<void> {
  endpoint = await scene.endpoint(more);
  scene.run(scene.loops.scale());
  await scene.advance(50);
}
const workers = () => scene.workersOf(endpoint);
const wanted = () => workers().map(({ row }) => row.wanted);
const submitMany = (count: number, body?: unknown) =>
  Promise.all(Array.from({ length: count }, () => scene.submit(endpoint, body)));
const crash = (worker: LiveWorker) => endWorker(scene.parts, worker, { code: 1, note: "no module" }, "it ended");

/** Lets a worker's first poll find nothing: it is idle from then on. */
async function idle(worker: LiveWorker): Promise<void> {
  await scene.take(worker);
  await scene.settle();
}

describe("A worker is started", () => {
  it("for the first waiting job, and not without a job", async () => {
    await scaled();
    await scene.advance(60_000);
    expect(workers()).toEqual([]);
    await scene.submit(endpoint);
    await scene.advance(50);
    expect(workers()).toHaveLength(1);
    expect(workers()[0]?.row).toMatchObject({ version: 1, wanted: "running", startedAt: undefined });
  });

  it("never for lowPriority jobs, which run if there is a worker", async () => {
    await scaled();
    const [low] = await submitMany(3, { input: {}, policy: { lowPriority: true } });
    await scene.advance(60_000);
    expect(workers()).toEqual([]);
    await scene.submit(endpoint);
    await scene.advance(50);
    expect(workers()).toHaveLength(1);
    expect(await scene.take(workers()[0]!)).toMatchObject([{ id: low }]);
  });

  it("for each job that has waited longer than scalerValue, up to workersMax", async () => {
    await scaled({ workersMax: 3 });
    await submitMany(9);
    await scene.advance(3_900);
    expect(workers()).toHaveLength(1);
    await scene.advance(200);
    expect(workers()).toHaveLength(3);
    await scene.advance(60_000);
    expect(workers()).toHaveLength(3);
  });

  it("for every scalerValue jobs if the scaler counts requests", async () => {
    await scaled({ scalerType: "REQUEST_COUNT", scalerValue: 4, workersMax: 10 });
    await submitMany(9);
    await scene.advance(50);
    expect(workers()).toHaveLength(3);
  });

  it("until there are workersMin", async () => {
    await scaled({ workersMin: 2 });
    expect(workers()).toHaveLength(2);
  });

  it("when workersMax is raised from 0", async () => {
    await scaled({ workersMax: 0 });
    await submitMany(1);
    await scene.advance(10_000);
    expect(workers()).toEqual([]);
    await updateEndpoint(scene.parts, scene.admin, endpoint, { workersMax: 1 });
    await scene.advance(50);
    expect(workers()).toHaveLength(1);
  });

  it("for an endpoint that was made after the loop had begun", async () => {
    await scaled();
    endpoint = await scene.endpoint();
    await scene.submit(endpoint);
    await scene.advance(50);
    expect(workers()).toHaveLength(1);
  });

  it("even if the check of another endpoint has failed", async () => {
    await scaled();
    const other = await scene.endpoint();
    vi.spyOn(scene.stores.decisions, "record").mockRejectedValueOnce(new Error("the disk is full"));
    await Promise.all([scene.submit(endpoint), scene.submit(other)]);
    await scene.advance(60_000);
    expect([workers().length, scene.workersOf(other).length]).toEqual([1, 1]);
  });

  it("for a job that waits, and no further worker when that one comes up", async () => {
    await scaled({ workersMax: 5, scalerValue: 1 });
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
    await scaled({ locations: "US", workersMin: 1 });
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
    await scaled({ idleTimeout: 30 });
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
    await scaled({ idleTimeout: 10, workersMax: 5 });
    const [first, second, third] = [
      await scene.worker(endpoint),
      await scene.worker(endpoint),
      await scene.worker(endpoint),
    ] as const;
    for (const worker of [second, third, first]) {
      await idle(worker);
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
    await scaled({ idleTimeout: 1, workersMax: 2 });
    await idle(await scene.worker(endpoint));
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
    await scaled({ idleTimeout: 1, workersMin: 1 });
    await idle(workers()[0]!);
    await idle(await scene.worker(endpoint));
    await scene.advance(60_000);
    expect(wanted().filter((each) => each === "running")).toHaveLength(1);
  });

  it("only after its full idle time following a restart of the server", async () => {
    endpoint = await scene.endpoint({ idleTimeout: 60 });
    const worker = await scene.worker(endpoint);
    await idle(worker);
    await scene.advance(600_000);
    await scene.done(worker, await scene.running(endpoint, worker));
    scene = await scene.restart();
    scene.run(scene.loops.scale());
    await scene.advance(50_000);
    expect(wanted()).toEqual(["running"]);
  });

  it("at once if workersMax is 0; a busy worker after its job, and waiting jobs stay", async () => {
    await scaled({ idleTimeout: 600, workersMax: 5 });
    const [idler, busy] = [await scene.worker(endpoint), await scene.worker(endpoint)] as const;
    await idle(idler);
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
    await scaled({ workersMax: 5 });
    const [starting, busy] = [await scene.worker(endpoint), await scene.worker(endpoint)] as const;
    await scene.running(endpoint, busy);
    await deleteEndpoint(scene.parts, scene.admin, endpoint, { setToZero: true });
    await scene.advance(50);
    expect([starting.row.wanted, busy.row.wanted]).toEqual(["stopped", "stopped"]);
  });
});

describe("A worker of an older version", () => {
  it("is replaced: at once if idle; if busy it is closed when a new one is up, and stopped after its job", async () => {
    await scaled({ workersMax: 5, workersMin: 2, idleTimeout: 600 });
    const [idler, busy] = workers() as [LiveWorker, LiveWorker];
    await updateEndpoint(scene.parts, scene.admin, endpoint, { workersMin: 0 });
    await idle(idler);
    await idle(busy);
    busy.busyAt++; // it is served first
    const id = await scene.running(endpoint, busy);
    await updateEndpoint(scene.parts, scene.admin, endpoint, { env: { A: "1" } });
    await scene.advance(50);
    expect([idler.row.wanted, busy.row.wanted]).toEqual(["stopped", "running"]);
    await idle(workers().find(({ row }) => row.version === 2)!);
    await scene.advance(50);
    expect(busy.row.wanted).toBe("closed");
    await scene.done(busy, id);
    await scene.advance(50);
    expect(busy.row.wanted).toBe("stopped");
  });
});

describe("A release", () => {
  const newOnes = () => workers().filter(({ row }) => row.version === 2);

  it("never leaves fewer workers than needed: an old worker is stopped once its successor is up", async () => {
    await scaled({ workersMax: 3, workersMin: 2, idleTimeout: 600 });
    const old = workers() as [LiveWorker, LiveWorker];
    for (const worker of old) await idle(worker);
    await updateEndpoint(scene.parts, scene.admin, endpoint, { env: { A: "1" } });
    await scene.advance(50);
    expect(newOnes()).toHaveLength(1); // workersMax leaves room for one
    expect(old.map(({ row }) => row.wanted)).toEqual(["running", "running"]);
    await idle(newOnes()[0]!);
    await scene.advance(50);
    const [gone] = old.filter(({ row }) => row.wanted === "stopped");
    expect(gone).toBeDefined();
    await endWorker(scene.parts, gone!, { code: 0 }, "stopped");
    await scene.advance(50);
    await idle(newOnes()[1]!);
    await scene.advance(50);
    expect(old.map(({ row }) => row.wanted)).toEqual(["stopped", "stopped"]);
  });

  it("stops if its workers fail three times at their start: the old workers stay, and a save resumes it", async () => {
    await scaled({ workersMax: 3, workersMin: 1, idleTimeout: 600 });
    const [old] = workers() as [LiveWorker];
    await idle(old);
    await updateEndpoint(scene.parts, scene.admin, endpoint, { env: { A: "1" } });
    for (const _ of [1, 2, 3]) {
      await scene.advance(10_000);
      await crash(newOnes()[0]!);
    }
    await scene.advance(600_000);
    expect(old.row.wanted).toBe("running");
    expect(newOnes()).toEqual([]);
    const id = await scene.submit(endpoint);
    expect(await scene.take(old)).toMatchObject([{ id }]);
    await scene.done(old, id);
    await updateEndpoint(scene.parts, scene.admin, endpoint, { env: { A: "2" } });
    await scene.advance(50);
    const [fresh] = workers().filter(({ row }) => row.version === 3);
    await idle(fresh!);
    await scene.advance(50);
    expect(old.row.wanted).toBe("stopped");
  });

  it("keeps the old workers while all jobs run and none waits", async () => {
    await scaled({ workersMax: 5, scalerValue: 100 });
    await scene.submit(endpoint);
    await scene.advance(50);
    const [old] = workers() as [LiveWorker];
    await scene.take(old);
    await updateEndpoint(scene.parts, scene.admin, endpoint, { env: { A: "1" } });
    await scene.advance(50);
    expect(old.row).toMatchObject({ version: 1, wanted: "running" });
  });

  it("that stopped starts the previous version again when a job comes", async () => {
    await scaled({ idleTimeout: 1, scalerType: "REQUEST_COUNT", scalerValue: 1 });
    await scene.submit(endpoint);
    await scene.advance(50);
    const [old] = workers() as [LiveWorker];
    const [job] = await scene.take(old);
    await updateEndpoint(scene.parts, scene.admin, endpoint, { env: { A: "broken" } });
    for (const _ of [1, 2, 3]) {
      await scene.advance(10_000);
      await crash(newOnes()[0]!);
    }
    await scene.done(old, job!.id);
    await scene.advance(2_000);
    await endWorker(scene.parts, old, { code: 0 }, "stopped");
    await scene.submit(endpoint);
    await scene.advance(20_000);
    expect(workers().map(({ row }) => [row.version, row.wanted])).toContainEqual([1, "running"]);
  });
});

describe("After a failed start", () => {
  it("the next one comes after 1 s, 2 s, 4 s, and finally 5 min", async () => {
    await scaled();
    await scene.submit(endpoint);
    await scene.advance(50);
    for (const pauseMs of [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000, 128_000, 256_000, 300_000, 300_000]) {
      expect(workers()).toHaveLength(1);
      await crash(workers()[0]!);
      await scene.advance(pauseMs - 1);
      expect(workers()).toEqual([]);
      await scene.advance(100);
    }
    expect(await scene.status(endpoint, (await submitMany(1))[0]!)).toMatchObject({
      waitReason: "crash_looping",
      waitDetail: expect.stringContaining("no module"),
    });
  });

  it("the pauses grow even if each worker asks for a job once before it ends", async () => {
    await scaled({ workersMin: 1, workersMax: 1 });
    const seen: number[] = [];
    for (let n = 0; n < 7; n++) {
      await idle(workers()[0]!);
      await crash(workers()[0]!);
      const endedAt = scene.clock.now();
      while (workers().length === 0) await scene.advance(100);
      seen.push(Math.round((scene.clock.now() - endedAt) / 1_000));
    }
    expect(seen).toEqual([1, 2, 4, 8, 16, 32, 64]);
    expect(scene.now(endpoint)).toMatchObject({ failedStarts: 7, verdict: "no module" });
  });

  it("failures before a worker that has lived long are forgotten", async () => {
    await scaled({ workersMin: 1, workersMax: 1 });
    for (let n = 0; n < 4; n++) {
      await crash(workers()[0]!);
      while (workers().length === 0) await scene.advance(100);
    }
    await idle(workers()[0]!);
    await scene.advance(360_000);
    await crash(workers()[0]!); // it had started successfully
    expect(scene.now(endpoint).failedStarts).toBe(0);
    await scene.advance(100);
    await crash(workers()[0]!);
    expect(scene.now(endpoint).failedStarts).toBe(1);
  });

  it("workers that fail one after another, beside a healthy one, make the pauses grow", async () => {
    await scaled({ workersMin: 3, workersMax: 3 });
    const [well] = workers();
    await idle(well!);
    const bornAt = new Map<number, number>();
    let crashes = 0;
    for (let second = 0; second < 600; second++) {
      for (const worker of workers()) {
        if (worker === well || worker.row.no === well!.row.no) continue;
        const age = second - (bornAt.get(worker.row.no) ?? second - (bornAt.size === 0 ? 10 : 0));
        bornAt.set(worker.row.no, second - age);
        if (age < 20) continue;
        await crash(worker);
        crashes++;
      }
      if (second % 15 === 0) void scene.take(well!, { holdsNothing: true });
      await scene.advance(1_000);
    }
    expect(crashes).toBeLessThan(25); // 58 if each moved the time from which the next pause counts
    expect(scene.now(endpoint).failedStarts).toBeGreaterThan(4);
  });

  it("workers that were started together count once", async () => {
    await scaled({ workersMin: 9, workersMax: 9 });
    for (const worker of workers()) await crash(worker);
    expect(scene.now(endpoint).failedStarts).toBe(1);
    await scene.advance(1_100);
    expect(workers()).toHaveLength(1);
    await crash(workers()[0]!);
    expect(scene.now(endpoint).failedStarts).toBe(2);
  });

  it("only one worker starts at a time, until one is ready", async () => {
    await scaled({ workersMax: 5, workersMin: 5 });
    expect(workers()).toHaveLength(5);
    for (const worker of workers()) await crash(worker);
    await scene.advance(20_000);
    expect(workers()).toHaveLength(1);
    await idle(workers()[0]!);
    await scene.advance(100);
    expect(workers()).toHaveLength(5);
  });

  it("a save of the endpoint ends the pause", async () => {
    await scaled();
    await scene.submit(endpoint);
    await scene.advance(50);
    for (let n = 0; n < 5; n++) {
      await crash(workers()[0] ?? (await scene.worker(endpoint)));
      await scene.advance(50);
    }
    expect(workers()).toEqual([]);
    await updateEndpoint(scene.parts, scene.admin, scene.now(endpoint), { name: "try again" });
    await scene.advance(50);
    expect(workers()).toHaveLength(1);
  });
});

describe("The decisions", () => {
  it("are stored once for as long as they stay the same, with their inputs", async () => {
    await scaled();
    await scene.submit(endpoint);
    await scene.advance(10_000);
    const decisions = await showDecisions(scene.parts, endpoint);
    const start = decisions.find(({ outcome }) => outcome === "start 1");
    expect(start).toMatchObject({ reason: expect.stringMatching(/a job waits/), inputs: { waiting: 1, workers: [] } });
    expect(decisions.length).toBeLessThan(6);
  });

  it("whose writes fail are stored with the next tick, in order", async () => {
    await scaled();
    const record = vi.spyOn(scene.stores.decisions, "record");
    for (let times = 0; times < 2; times++) record.mockRejectedValueOnce(new Error("the disk is full"));
    await scene.submit(endpoint);
    await scene.advance(60_000);
    const outcomes = (await showDecisions(scene.parts, endpoint)).map(({ outcome }) => outcome).reverse();
    expect(outcomes.filter((outcome) => outcome === "start 1")).toHaveLength(1);
    expect(outcomes.indexOf("start 1")).toBeLessThan(outcomes.length - 1);
    expect(new Set(outcomes).size).toBe(outcomes.length);
  });
});

it("With nothing to do the scaler does nothing", async () => {
  await scaled();
  const before = scene.clock.wakes;
  await scene.advance(24 * 3_600_000);
  expect(scene.clock.wakes - before).toBeLessThan(10);
});
