import { expect } from "vitest";
import { type Change, type Job, type JobStatus, mayHappen } from "../../domain/jobs/job.js";
import type { Tally } from "../../store/index.js";
import type { Scene } from "./scene.js";
import type { Step } from "./steps-fixture.js";

/** The test's model of a job: enough to predict every answer of the store. */
interface Known {
  readonly id: string;
  readonly lowPriority: boolean;
  readonly ttlEndAt: number;
  readonly retentionMs: number;
  status: JobStatus | "DELETED";
  starts: number;
  worker: number | undefined;
  /** Its position in the order: submissions and retries count up. */
  place: number;
  expiresAt: number;
  stopWanted: boolean;
}

/** Runs steps against a store and a model, and compares every answer. */
export class History {
  readonly jobs: Known[] = [];
  readonly #counts = { completed: 0, failed: 0, retried: 0 };
  #places = 0;
  #read: { job: Job; known: Known; place: number } | undefined;
  readonly #scene: Scene;
  readonly #workers: readonly number[];

  constructor(scene: Scene, workers: readonly number[]) {
    this.#scene = scene;
    this.#workers = workers;
  }

  async run(steps: readonly Step[]): Promise<void> {
    for (const each of steps) {
      await this.#step(each);
      await this.#compare();
    }
  }

  async #step(each: Step): Promise<void> {
    const scene = this.#scene;
    switch (each.do) {
      case "submit":
        return this.#submit(each);
      case "take":
        return this.#take(each.asks.map((ask) => ({ workerNo: this.#workers[ask.worker]!, count: ask.count })));
      case "word":
        return this.#word(this.#any(each.pick), this.#workers[each.worker]!, each.fails);
      case "change":
        return this.#change(this.#any(each.pick), changeOf(each.by, each.excused));
      case "read": {
        const known = this.#any(each.pick);
        const job = known && (await scene.find(known.id));
        if (job) this.#read = { job, known: known!, place: known!.place };
        return;
      }
      case "stale":
        return this.#stale(changeOf(each.by, false));
      case "confirm":
        return this.#confirm(this.#any(each.pick), this.#workers[each.worker]!);
      case "purge":
        return this.#purge(each.limit);
      case "sweep":
        return this.#sweep(each.limit);
      case "pass":
        scene.now += each.ms;
    }
  }

  #any(n: number): Known | undefined {
    const there = this.jobs.filter(({ status }) => status !== "DELETED");
    return there[n % Math.max(1, there.length)];
  }

  #shown(known: Known): boolean {
    return known.status !== "DELETED" && known.expiresAt > this.#scene.now;
  }

  #waiting(): Known[] {
    return this.jobs
      .filter((known) => known.status === "IN_QUEUE" && this.#shown(known))
      .sort((a, b) => a.place - b.place);
  }

  async #submit({ lowPriority, ttlMs, retentionMs }: Extract<Step, { do: "submit" }>): Promise<void> {
    const ttlEndAt = this.#scene.now + ttlMs;
    const id = await this.#scene.submit({ lowPriority, ttlEndAt, retentionMs });
    this.jobs.push({
      id,
      lowPriority,
      ttlEndAt,
      retentionMs,
      status: "IN_QUEUE",
      starts: 0,
      worker: undefined,
      place: ++this.#places,
      expiresAt: ttlEndAt,
      stopWanted: false,
    });
  }

  /**
   * Several takes at the same moment: no job goes to two workers, none is skipped, and each worker gets its jobs in
   * order. The order of the takes themselves is not defined: PostgreSQL runs them concurrently.
   */
  async #take(asks: readonly { workerNo: number; count: number }[]): Promise<void> {
    const { stores, endpointNo, now } = this.#scene;
    const waiting = this.#waiting();
    const turns = await Promise.all(asks.map((ask) => stores.jobs.take({ endpointNo, asks: [ask], now })));
    const due = waiting.slice(
      0,
      asks.reduce((sum, { count }) => sum + count, 0),
    );
    expect(turns.flatMap(({ jobs }) => jobs.map(({ id }) => id)).sort()).toEqual(due.map(({ id }) => id).sort());
    turns.forEach(({ jobs, dry }, at) => {
      const { workerNo, count } = asks[at]!;
      const own = due.filter(({ id }) => jobs.some((job) => job.id === id));
      expect(jobs.map(({ id }) => id)).toEqual(own.map(({ id }) => id));
      expect(dry).toBe(own.length < count);
      for (const known of own)
        Object.assign(known, { status: "IN_PROGRESS", worker: workerNo, starts: known.starts + 1 });
    });
  }

  async #word(known: Known | undefined, workerNo: number, fails: boolean): Promise<void> {
    if (!known) return;
    const verdict = fails
      ? ({ status: "FAILED", error: "it broke", output: undefined } as const)
      : ({ status: "COMPLETED", output: "1" } as const);
    const settled = await this.#scene.settle(known.id, workerNo, verdict);
    if (known.status === "IN_PROGRESS" && known.worker === workerNo && this.#shown(known)) {
      expect(settled?.status).toBe(verdict.status);
      this.#end(known, verdict.status);
    } else {
      expect(settled).toBeUndefined();
      if (known.worker === workerNo) known.stopWanted = false;
    }
  }

  #end(known: Known, status: JobStatus): void {
    if (status === "COMPLETED") this.#counts.completed++;
    if (status === "FAILED" || status === "TIMED_OUT") this.#counts.failed++;
    known.status = status;
    known.expiresAt = Math.min(known.ttlEndAt, this.#scene.now + known.retentionMs);
  }

  /** Changes a job as operations do: read, decide by the table, then change. */
  async #change(known: Known | undefined, change: Change): Promise<void> {
    const job = known && (await this.#scene.find(known.id));
    if (!known || !job || !mayHappen(change.by, job.status)) return;
    expect((await this.#scene.stores.jobs.change({ job, change, now: this.#scene.now })) !== undefined).toBe(true);
    this.#changed(known, change);
  }

  /**
   * Applies a change to a job as it was read some steps ago: it must succeed only if nothing has happened to the job
   * since.
   */
  async #stale(change: Change): Promise<void> {
    if (!this.#read) return;
    const { job, known, place } = this.#read;
    // A retry in between restarts the count of starts: the contract has a separate test for that.
    if (!mayHappen(change.by, job.status) || known.place !== place || !this.#shown(known)) return;
    const same = known.status === job.status && known.starts === job.starts;
    const settled = await this.#scene.stores.jobs.change({ job, change, now: this.#scene.now });
    expect(settled !== undefined).toBe(same);
    if (same) this.#changed(known, change);
  }

  #changed(known: Known, change: Change): void {
    switch (change.by) {
      case "giveBack":
        known.status = "IN_QUEUE";
        if (!change.excused) this.#counts.retried++;
        return;
      case "retry":
        Object.assign(known, { status: "IN_QUEUE", starts: 0, stopWanted: false, expiresAt: known.ttlEndAt });
        known.place = ++this.#places;
        return;
      default:
        known.stopWanted = known.status === "IN_PROGRESS" && change.by !== "fail";
        this.#end(known, change.by === "cancel" ? "CANCELLED" : change.by === "fail" ? "FAILED" : "TIMED_OUT");
    }
  }

  async #confirm(known: Known | undefined, workerNo: number): Promise<void> {
    const held = await this.#scene.stores.reader.heldBy(workerNo);
    const no = held.find(({ id }) => id === known?.id)?.no;
    if (!known || no === undefined) return;
    await this.#scene.stores.jobs.confirmStopped({ workerNo, jobNos: [no] });
    known.stopWanted = false;
  }

  async #purge(limit: number): Promise<void> {
    // The contract has a separate test for expired jobs.
    if (this.jobs.some((known) => known.status === "IN_QUEUE" && !this.#shown(known))) return;
    const { stores, endpointNo, now } = this.#scene;
    const upTo = await stores.reader.lastPlace();
    const due = this.#waiting().slice(0, limit);
    const cancelled = await stores.jobs.cancelWaiting({ endpointNo, upToPlace: upTo, error: "purged", now, limit });
    expect(cancelled.map(({ id }) => id).sort()).toEqual(due.map(({ id }) => id).sort());
    for (const known of due) this.#end(known, "CANCELLED");
  }

  async #sweep(limit: number): Promise<void> {
    const due = this.jobs
      .filter((known) => known.status !== "DELETED" && !this.#shown(known) && !known.stopWanted)
      .sort((a, b) => a.expiresAt - b.expiresAt);
    const { deleted, stopped, more } = await this.#scene.stores.jobs.sweep({ now: this.#scene.now, limit });
    expect(deleted + stopped.length).toBe(Math.min(limit, due.length));
    expect(more).toBe(due.length >= limit);
    for (const { id } of stopped) {
      const known = due.find((each) => each.id === id);
      expect(known?.status).toBe("IN_PROGRESS");
      Object.assign(known!, { status: "CANCELLED", stopWanted: true });
    }
    // Jobs with equal times may be deleted in any order: compare with the jobs that are no longer listed.
    const left = new Set(await this.#listed(due));
    for (const known of due) {
      if (!known.stopWanted && !left.has(known.id)) known.status = "DELETED";
    }
    expect(due.filter(({ status }) => status === "DELETED")).toHaveLength(deleted);
  }

  /** Which of these are still stored, expired or not: the list is read as if no time had passed. */
  async #listed(due: readonly Known[]): Promise<string[]> {
    const { stores, endpointNo } = this.#scene;
    const found = await Promise.all(due.map(({ id }) => stores.reader.find({ endpointNo, jobId: id, now: 0 })));
    return found.flatMap((job) => (job ? [job.id] : []));
  }

  async #compare(): Promise<void> {
    const { stores, endpointNo } = this.#scene;
    const tally = await stores.tallies.tally(endpointNo);
    expect(tally).toEqual(this.#expected());
    expect(await stores.tallies.recount(endpointNo)).toEqual(tally);
    for (const known of this.jobs) {
      const job = await this.#scene.find(known.id);
      expect(job !== undefined).toBe(this.#shown(known));
      if (job) {
        const { status, starts, stopWanted, expiresAt } = known;
        expect(job).toMatchObject({ status, starts, stopWanted, expiresAt });
        if (status === "IN_PROGRESS") expect(job.workerNo).toBe(known.worker);
      }
    }
    for (const workerNo of this.#workers) {
      const own = this.jobs.filter(
        (known) => known.worker === workerNo && (known.status === "IN_PROGRESS" || known.stopWanted),
      );
      const held = await stores.reader.heldBy(workerNo);
      expect(held.map(({ id }) => id).sort()).toEqual(own.map(({ id }) => id).sort());
    }
  }

  #expected(): Tally {
    const count = (status: JobStatus) => this.jobs.filter((known) => known.status === status);
    return {
      waiting: count("IN_QUEUE").length,
      waitingNormal: count("IN_QUEUE").filter(({ lowPriority }) => !lowPriority).length,
      running: count("IN_PROGRESS").length,
      ...this.#counts,
    };
  }
}

function changeOf(event: Change["by"], excused: boolean): Change {
  if (event === "giveBack") return { by: event, excused };
  if (event === "fail" || event === "timeOut") return { by: event, error: "too bad" };
  return { by: event };
}
