import { beforeEach, describe, expect, it } from "vitest";
import type { Worker } from "../../domain/workers/worker.js";
import {
  changed,
  mayHappenTo,
  type WorkerChange,
  type WorkerEvent,
  type WorkerStage,
  workerTransitions,
} from "../../domain/workers/worker-life.js";
import { workerChanges } from "../../testing/facts-fixture.js";
import type { Scene, Setting } from "./scene.js";

/** The changes that bring a worker to each stage. */
const waysTo: Record<WorkerStage, readonly WorkerChange[]> = {
  running: [],
  closed: [workerChanges.close],
  paused: [workerChanges.pause],
  stopped: [workerChanges.stop],
  ended: [workerChanges.stop, workerChanges.end],
};
/** Events that may happen only once, once they have happened. */
const done: readonly (readonly WorkerChange[])[] = [[], [workerChanges.place, workerChanges.ready]];

/** A worker's row changes only by an event in the table of a worker's life. */
export function workerRows(setting: () => Setting): void {
  let scene: Scene;
  let no: number;
  beforeEach(() => {
    ({ scene, first: no } = setting());
  });
  const row = async (): Promise<Worker> => {
    const found = (await scene.stores.workers.all(0)).find((each) => each.no === no);
    if (!found) throw new Error("the worker's row is gone");
    return found;
  };
  const apply = async (changes: readonly WorkerChange[]) => {
    for (const change of changes) expect(await scene.stores.workers.change(no, change)).toBe(true);
  };

  describe("the table of a worker's life", () => {
    const events = Object.keys(workerTransitions) as WorkerEvent[];
    it.each(events)("is followed at every stage, for the first time and again: %s", async (event) => {
      for (const [stage, way] of Object.entries(waysTo)) {
        for (const before of done) {
          no = await scene.worker(`life-${event}-${stage}-${before.length}`);
          await apply([...before, ...way]);
          const worker = await row();
          const change = workerChanges[event];
          const isMade = await scene.stores.workers.change(no, change);
          const after = mayHappenTo(event, worker) ? changed(worker, change) : worker;
          expect([stage, isMade, await row()]).toEqual([stage, mayHappenTo(event, worker), after]);
        }
      }
    });

    it("has one winner if two changes are made from the same stage", async () => {
      const { change } = scene.stores.workers;
      const isMade = await Promise.all([change(no, workerChanges.pause), change(no, workerChanges.close)]);
      expect([...isMade].sort()).toEqual([false, true]);
      expect((await row()).wanted).toBe(isMade[0] ? "paused" : "closed");
    });

    it("changes nothing for a worker that never existed", async () => {
      for (const change of Object.values(workerChanges))
        expect(await scene.stores.workers.change(987_654, change)).toBe(false);
    });

    it("clears the problem of a worker that is healthy again", async () => {
      await apply([workerChanges.unhealthy]);
      expect((await row()).trouble).toEqual(workerChanges.unhealthy.trouble);
      await apply([workerChanges.healthy]);
      expect((await row()).trouble).toBeUndefined();
    });
  });

  describe("a worker that waits for a place", () => {
    const place = async (cpus: number) => {
      const hostNo = await scene.stores.hosts.ensure("host", scene.now);
      const resources = { gpus: [{ id: "GPU-1", name: "NVIDIA L4" }], cpus, memoryMib: 1_024 };
      return scene.stores.workers.place(no, { hostNo, resources, placedAt: scene.now });
    };

    it("is given a place once", async () => {
      const given = await Promise.all([place(1), place(2)]);
      expect([...given].sort()).toEqual([false, true]); // either may come first
      const cpus = given[0] ? 1 : 2;
      expect(await row()).toMatchObject({
        resources: { gpus: [{ id: "GPU-1", name: "NVIDIA L4" }], cpus, memoryMib: 1_024 },
        placedAt: scene.now,
      });
    });

    it.each(["closed", "stopped", "ended"] as const)("is given no place if it is %s by now", async (stage) => {
      await apply(waysTo[stage]);
      expect(await place(1)).toBe(false);
      expect((await row()).placedAt).toBeUndefined();
    });
  });
}
