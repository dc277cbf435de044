import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Endpoint } from "../../domain/endpoints/endpoint.js";
import type { LiveWorker } from "../../memory/registry.js";
import { plainRelease, workerChanges } from "../../testing/facts-fixture.js";
import { Scene } from "../../testing/scene-fixture.js";
import { cancelJob } from "../jobs/change-job.js";
import { closeWorker, endWorker, giveUpOn, pauseWorker, resumeWorker, stopWorker } from "./worker-life.js";

let scene: Scene;
let endpoint: Endpoint;
let worker: LiveWorker;
beforeEach(async () => {
  scene = await Scene.open();
  endpoint = await scene.endpoint();
  worker = await scene.worker(endpoint);
});
afterEach(() => scene.close());

const exit = { code: 1, note: "it ended with exit code 1" };
const end = (each = worker) => endWorker(scene.parts, each, exit, "it ended");

describe("The end of a worker", () => {
  it("gives its jobs back at once, to the front", async () => {
    const first = await scene.running(endpoint, worker);
    const second = await scene.submit(endpoint);
    await end();
    expect(await scene.status(endpoint, first)).toMatchObject({ status: "IN_QUEUE", retries: 1, queuePosition: 0 });
    expect(await scene.status(endpoint, second)).toMatchObject({ queuePosition: 1 });
  });

  it("is excused if the server had asked for it", async () => {
    const id = await scene.running(endpoint, worker);
    await stopWorker(scene.parts, worker, "a test", 30_000);
    await end();
    expect(await scene.status(endpoint, id)).toMatchObject({ status: "IN_QUEUE", retries: 0 });
  });

  it("fails a job that was lost with its third worker, saying so", async () => {
    const id = await scene.submit(endpoint);
    for (let start = 1; start <= 3; start++) {
      const next = await scene.worker(endpoint);
      await scene.take(next);
      await end(next);
    }
    expect(await scene.status(endpoint, id)).toMatchObject({
      status: "FAILED",
      error: "Each worker that ran this job was lost (3 starts in all). The last of them: it ended with exit code 1",
      retries: 2,
    });
    expect(await scene.stores.reader.heldBy(worker.row.no)).toEqual([]);
  });

  it("confirms the stop of the jobs that it was told to stop", async () => {
    const id = await scene.running(endpoint, worker);
    await cancelJob(scene.parts, endpoint, id);
    await end();
    expect(await scene.stores.reader.heldBy(worker.row.no)).toEqual([]);
    expect(await scene.state(endpoint, id)).toBe("CANCELLED");
  });

  it("counts once even if it is reported twice", async () => {
    const id = await scene.running(endpoint, worker);
    await end();
    await end();
    expect(await scene.status(endpoint, id)).toMatchObject({ retries: 1 });
    expect(scene.events.filter(({ type }) => type === "worker.ended")).toHaveLength(1);
  });

  it("before it asked for a job is a failed start, with its last log lines as the reason", async () => {
    await end();
    expect(scene.now(endpoint)).toMatchObject({
      failedStarts: 1,
      failedAt: scene.clock.now(),
      verdict: "it ended with exit code 1",
    });
    await scene.advance(1);
    await end(await scene.worker(endpoint));
    expect(scene.now(endpoint).failedStarts).toBe(2);
  });

  it("is never visible without its failed start, or the next worker would start without a pause", async () => {
    let seen: number | undefined;
    scene.during("workers.change", () => {
      if (scene.workersOf(endpoint).length === 0) seen = scene.now(endpoint).failedStarts;
    });
    await end();
    expect(seen).toBe(1);
  });

  it("is not a failed start if the server asked for it, if it held a job, or if it had done one", async () => {
    const [asked, holding, served] = [worker, await scene.worker(endpoint), await scene.worker(endpoint)];
    await stopWorker(scene.parts, asked, "a test", 0);
    await scene.done(served, await scene.running(endpoint, served));
    await scene.running(endpoint, holding);
    for (const each of [asked, holding, served]) await end(each);
    expect(scene.now(endpoint).failedStarts).toBe(0);
  });

  it("is not a failed start if it was not seen, because its host was silent or forgot it", async () => {
    await endWorker(scene.parts, worker, exit, "its host has been silent for 30 s", { isBlameless: true });
    expect(scene.now(endpoint).failedStarts).toBe(0);
  });

  it("is not a failed start of the present version if the worker was of an older one", async () => {
    await scene.parts.registry.saveEndpoint(endpoint, endpoint.settings, plainRelease);
    await end();
    expect(scene.now(endpoint).failedStarts).toBe(0);
  });

  it("no longer counts as a failed start once a worker asks for a job", async () => {
    await end();
    await scene.take(await scene.worker(endpoint));
    expect(scene.now(endpoint)).toMatchObject({ failedStarts: 0, verdict: undefined });
  });

  it("loses no job that is on its way to the worker at that moment", async () => {
    const poll = scene.poll(worker);
    await scene.settle();
    let ending: Promise<void> | undefined;
    scene.during("jobs.take", () => {
      ending = end();
    });
    const id = await scene.submit(endpoint);
    await scene.settle();
    await ending;
    await poll.answer;
    scene.run(scene.loops.watch());
    await scene.advance(35_000);
    expect(await scene.state(endpoint, id)).toBe("IN_QUEUE");
  });
});

describe("Closing and stopping", () => {
  it("close a worker for jobs, and then stop it at the earliest requested time", async () => {
    await closeWorker(scene.parts, worker, "a test");
    expect(worker.row).toMatchObject({ wanted: "closed", closedAt: scene.clock.now() });
    await stopWorker(scene.parts, worker, "a test", 30_000);
    const killAt = scene.clock.now() + 30_000;
    expect(worker.row).toMatchObject({ wanted: "stopped", stopAt: scene.clock.now(), killAt });
    await scene.advance(1_000);
    await stopWorker(scene.parts, worker, "a test", 60_000);
    expect(worker.row.killAt).toBe(killAt);
    await stopWorker(scene.parts, worker, "a test", 2_000);
    expect(worker.row.killAt).toBe(scene.clock.now() + 2_000);
  });

  it("never open a stopped worker again", async () => {
    await stopWorker(scene.parts, worker, "a test", 30_000);
    await closeWorker(scene.parts, worker, "a test");
    expect(worker.row.wanted).toBe("stopped");
  });
});

describe("Waking a worker", () => {
  it("is announced to its host's server only once it is written: earlier, that server would find nothing", async () => {
    await scene.parts.registry.changeWorker(worker, { by: "ready", readyAt: scene.clock.now() });
    await scene.parts.registry.changeWorker(worker, workerChanges.pause);
    const order: string[] = [];
    const { change } = scene.stores.workers;
    vi.spyOn(scene.stores.workers, "change").mockImplementation(async (...changed) => {
      const isWritten = await change(...changed);
      order.push(changed[1].by);
      return isWritten;
    });
    vi.spyOn(scene.parts.bell, "ringElsewhere").mockImplementation((topic) => void order.push(`ring ${topic}`));
    await resumeWorker(scene.parts, worker, "a job waits");
    expect(order).toEqual(["resume", "ring workers"]);
  });
});

describe("A worker that another server has stopped, before this server has heard of it,", () => {
  it.each<[string, "running" | "paused", () => Promise<void>]>([
    ["closed", "running", () => closeWorker(scene.parts, worker, "ours")],
    ["paused", "running", () => pauseWorker(scene.parts, worker, "ours")],
    ["resumed", "paused", () => resumeWorker(scene.parts, worker, "ours")],
    ["given up", "paused", () => giveUpOn(scene.parts, worker)],
    ["stopped later", "running", () => stopWorker(scene.parts, worker, "ours", 60_000)],
  ])("is not %s", async (_, wanted, change) => {
    await scene.parts.registry.changeWorker(worker, { by: "ready", readyAt: scene.clock.now() });
    if (wanted === "paused") await scene.parts.registry.changeWorker(worker, workerChanges.pause);
    const killAt = scene.clock.now() + 30_000;
    const stop = { stopAt: scene.clock.now(), killAt, why: "theirs" };
    await scene.stores.workers.change(worker.row.no, { by: "stop", ...stop });
    const stopped = { wanted: "stopped", ...stop };
    await change();
    expect(await scene.stores.workers.find(worker.row.id)).toMatchObject(stopped);
    expect(worker.row).toMatchObject(stopped);
  });

  it("is stopped earlier if it must go sooner", async () => {
    const killAt = scene.clock.now() + 30_000;
    await scene.stores.workers.change(worker.row.no, { by: "stop", stopAt: 1, killAt, why: "theirs" });
    await stopWorker(scene.parts, worker, "ours", 1_000);
    const row = await scene.stores.workers.find(worker.row.id);
    expect(row).toMatchObject({ wanted: "stopped", stopAt: 1, killAt: scene.clock.now() + 1_000, why: "theirs" });
  });
});
