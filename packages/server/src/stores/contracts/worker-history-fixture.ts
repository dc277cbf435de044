import fc from "fast-check";
import { expect } from "vitest";
import type { Worker } from "../../domain/workers/worker.js";
import {
  changed,
  mayHappenTo,
  stageOf,
  type WorkerChange,
  type WorkerEvent,
} from "../../domain/workers/worker-life.js";
import type { Scene } from "./scene.js";

export const workerCount = 3;
const hostCount = 2;

/** One step of the history of some workers. */
export type WorkerStep =
  | { readonly do: "change"; readonly worker: number; readonly change: WorkerChange }
  /** Two servers change the same worker at the same time. */
  | { readonly do: "race"; readonly worker: number; readonly changes: readonly [WorkerChange, WorkerChange] }
  | { readonly do: "forget"; readonly endedBefore: number };

const at = fc.integer({ min: 1_790_000_000_000, max: 1_790_000_000_009 });
const why = fc.constantFrom("a test", "another test");
const hostNo = fc.integer({ min: 1, max: hostCount });
const exit = fc.record({ code: fc.nat(3), note: why }, { requiredKeys: [] });
const handle = fc.record({ provider: fc.constant("process"), ref: fc.record({ pid: fc.nat(3) }) });
const address = fc.constantFrom("127.0.0.1:1", "127.0.0.1:2");
const resources = fc.record({
  gpus: fc.constantFrom([], [{ id: "GPU-1", name: "NVIDIA L4" }]),
  cpus: fc.nat(3),
  memoryMib: fc.nat(3),
});

type Facts<Event extends WorkerEvent> = Omit<Extract<WorkerChange, { by: Event }>, "by">;
/** The facts that each event may record. */
const facts: { readonly [Event in WorkerEvent]: fc.Arbitrary<Facts<Event>> } = {
  wait: fc.record({ why }),
  place: fc.record({ hostNo, resources, placedAt: at }),
  close: fc.record({ closedAt: at, why }),
  giveUp: fc.record({ closedAt: at }),
  pause: fc.record({ pausedAt: at, why }),
  resume: fc.record({ resumedAt: at, pausedMs: fc.nat(3), why }),
  stop: fc.record({ stopAt: at, killAt: at, why }),
  killSooner: fc.record({ killAt: at }),
  rehost: fc.record({ hostNo }),
  prepare: fc.record(
    { secretHash: why, workerUrl: why, address, handle },
    { requiredKeys: ["secretHash", "workerUrl"] },
  ),
  start: fc.record(
    { startedAt: at, placedAt: at, imageAt: at, madeAt: at, address, handle },
    { requiredKeys: ["startedAt"] },
  ),
  freeze: fc.constant({}),
  askToStop: fc.record({ askedAt: at }),
  kill: fc.record({ killAt: at, exit }),
  end: fc.record({ endedAt: at, exit }),
  ready: fc.record({ readyAt: at }),
  ping: fc.constant({ hasPinged: true as const }),
  output: fc.record({ outputAt: at }),
  done: fc.record({ lastDoneAt: at, outputAt: at }, { requiredKeys: ["lastDoneAt"] }),
  lastWords: fc.record({ exit }),
  unhealthy: fc.record({ trouble: fc.record({ at, why }) }),
  healthy: fc.constant({ trouble: undefined }),
};
const changes = Object.entries(facts).map(([by, some]) => ({
  weight: by === "end" ? 1 : 2, // so that most lives are long
  arbitrary: (some as fc.Arbitrary<object>).map((each) => ({ by, ...each }) as WorkerChange),
}));
const change = fc.oneof(...changes);
const worker = fc.nat(workerCount - 1);
/** Any step. */
export const workerStep: fc.Arbitrary<WorkerStep> = fc.oneof(
  { weight: 12, arbitrary: fc.record({ do: fc.constant("change" as const), worker, change }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("race" as const), worker, changes: fc.tuple(change, change) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("forget" as const), endedBefore: at }) },
);

/** One worker's row as the table of a worker's life predicts it; undefined once it is forgotten. */
type Known = Worker | undefined;

/** Runs steps against a store and a model, and compares every answer and every row. */
export class WorkerHistory {
  readonly #scene: Scene;
  #workers: Known[];
  /** The numbers of the workers, which stay when they are forgotten. */
  readonly #nos: readonly number[];
  /** The rows of workers that have ended, as they were then. */
  readonly #ended = new Map<number, Worker>();

  private constructor(scene: Scene, workers: readonly Worker[]) {
    this.#scene = scene;
    this.#workers = [...workers];
    this.#nos = workers.map(({ no }) => no);
  }

  static async open(scene: Scene): Promise<WorkerHistory> {
    const { stores, endpointNo, now } = scene;
    for (let n = 1; n <= hostCount; n++) expect(await stores.hosts.ensure(`host-${n}`, now)).toBe(n);
    const workers: Worker[] = [];
    for (let n = 0; n < workerCount; n++) {
      const waits = n === 0 ? { throttled: "no room" } : {};
      const made = { id: `worker0000000${n}`, endpointNo, version: 1, hostNo: 1, createdAt: now, ...waits };
      workers.push(await stores.workers.create(made));
    }
    return new WorkerHistory(scene, workers);
  }

  async run(steps: readonly WorkerStep[]): Promise<void> {
    for (const each of steps) {
      await this.#step(each);
      await this.#compare();
    }
  }

  async #step(each: WorkerStep): Promise<void> {
    switch (each.do) {
      case "change": {
        const { isMade, after } = this.#predict(this.#workers[each.worker], each.change);
        expect([each.change, await this.#make(each.worker, each.change)]).toEqual([each.change, isMade]);
        this.#workers[each.worker] = after;
        return;
      }
      case "race":
        return this.#race(each.worker, each.changes);
      case "forget":
        await this.#scene.stores.workers.forget(each.endedBefore, 1_000);
        this.#workers = this.#workers.map((known) => (known && endedBy(known, each.endedBefore) ? undefined : known));
    }
  }

  #make(at: number, made: WorkerChange): Promise<boolean> {
    const { workers } = this.#scene.stores;
    const no = this.#nos[at]!;
    if (made.by !== "place") return workers.change(no, made);
    const { by: _, ...found } = made;
    return workers.place(no, found);
  }

  #predict(known: Known, made: WorkerChange): { isMade: boolean; after: Known } {
    const isMade = known !== undefined && mayHappenTo(made.by, known);
    return { isMade, after: isMade ? changed(known, made) : known };
  }

  /** Both answers and the row are those of one change after the other; either may be the first. */
  async #race(at: number, [one, two]: readonly [WorkerChange, WorkerChange]): Promise<void> {
    const known = this.#workers[at];
    const answers = await Promise.all([this.#make(at, one), this.#make(at, two)]);
    const first = this.#predict(known, one);
    const second = this.#predict(first.after, two);
    const other = this.#predict(known, two);
    const otherSecond = this.#predict(other.after, one);
    const ways = [
      { answers: [first.isMade, second.isMade], row: second.after },
      { answers: [otherSecond.isMade, other.isMade], row: otherSecond.after },
    ];
    const row = await this.#row(at);
    const way = ways.find((each) => isEqual({ answers, row }, each));
    if (!way) expect({ one, two, answers, row }).toEqual({ one, two, ...ways[0] });
    this.#workers[at] = way?.row;
  }

  async #row(at: number): Promise<Known> {
    return (await this.#scene.stores.workers.all(0)).find(({ no }) => no === this.#nos[at]);
  }

  async #compare(): Promise<void> {
    const rows = await this.#scene.stores.workers.all(0);
    const there = this.#workers.filter((known) => known !== undefined);
    expect([...rows].sort((a, b) => a.no - b.no)).toEqual(there);
    for (const row of rows) {
      const ended = this.#ended.get(row.no);
      if (ended) expect(row).toEqual(ended);
      else if (stageOf(row) === "ended") this.#ended.set(row.no, row);
    }
  }
}

const endedBy = ({ endedAt }: Worker, before: number): boolean => endedAt !== undefined && endedAt <= before;

function isEqual(found: unknown, expected: unknown): boolean {
  try {
    expect(found).toEqual(expected);
    return true;
  } catch {
    return false;
  }
}
