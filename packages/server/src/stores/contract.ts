import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { endpointDefaults } from "../domain/endpoint.js";
import { type Change, isFinal, type JobEvent, type JobStatus, mayHappen, transitions } from "../domain/job.js";
import { limits } from "../limits.js";
import type { NewJob, Stores, TakenJob } from "../store.js";

/** A database as the contract opens it: empty at first. */
export interface Opened {
  readonly stores: Stores;
  /** Closes it and opens it again, with what it holds; undefined where it keeps nothing. */
  readonly reopen: (() => Promise<Stores>) | undefined;
  end(): Promise<void>;
}

const startAt = 1_790_000_000_000;
const day = 24 * 3_600_000;
const statuses: readonly JobStatus[] = ["IN_QUEUE", "IN_PROGRESS", "COMPLETED", "FAILED", "CANCELLED", "TIMED_OUT"];
const completed = (output?: string) => ({ status: "COMPLETED", output }) as const;
const failed = (error: string) => ({ status: "FAILED", error, output: undefined }) as const;
const idsOf = (jobs: readonly { id: string }[]) => jobs.map(({ id }) => id);

/** One endpoint with workers over a database, and a time that tests move. */
export class Scene {
  now = startAt;
  stores: Stores;
  endpointNo = 0;
  readonly #opened: Opened;
  #jobs = 0;

  constructor(opened: Opened) {
    this.#opened = opened;
    this.stores = opened.stores;
  }

  static async open(open: () => Promise<Opened>): Promise<Scene> {
    const scene = new Scene(await open());
    scene.endpointNo = await scene.endpoint("endpoint000001");
    return scene;
  }

  async endpoint(id: string): Promise<number> {
    const settings = { ...endpointDefaults, name: "scene", templateId: "template000001" };
    return (await this.stores.endpoints.create({ id, ownerNo: 1, settings, createdAt: this.now })).no;
  }

  async worker(id: string, endpointNo = this.endpointNo): Promise<number> {
    const hostNo = await this.stores.hosts.ensure("host", this.now);
    return (await this.stores.workers.create({ id, endpointNo, version: 1, hostNo, createdAt: this.now })).no;
  }

  newJob(more: Partial<NewJob> = {}): NewJob {
    this.#jobs++;
    return {
      endpointNo: this.endpointNo,
      id: `job-${this.#jobs}`,
      body: `{"n":${this.#jobs}}`,
      webhook: undefined,
      s3Config: undefined,
      policy: undefined,
      lowPriority: false,
      executionTimeoutMs: 600_000,
      retentionMs: limits.runRetentionMs,
      ttlEndAt: this.now + day,
      createdAt: this.now,
      idempotency: undefined,
      ...more,
    };
  }

  /** Submits a job and returns its id. */
  async submit(more: Partial<NewJob> = {}): Promise<string> {
    const job = this.newJob(more);
    expect(await this.stores.jobs.submit(job)).toEqual({ kind: "submitted" });
    return job.id;
  }

  async submitMany(count: number, more: Partial<NewJob> = {}): Promise<string[]> {
    return await Promise.all(Array.from({ length: count }, () => this.submit(more)));
  }

  async take(workerNo: number, count = 1): Promise<TakenJob[]> {
    return (await this.stores.jobs.take(this.endpointNo, [{ workerNo, count }], this.now)).jobs;
  }

  async takeOne(workerNo: number): Promise<TakenJob> {
    const [job] = await this.take(workerNo);
    if (!job) throw new Error("nothing was waiting");
    return job;
  }

  settle(jobId: string, workerNo: number, verdict: Parameters<Stores["jobs"]["settle"]>[3] = completed()) {
    return this.stores.jobs.settle(this.endpointNo, jobId, workerNo, verdict, this.now);
  }

  find(jobId: string) {
    return this.stores.reader.find(this.endpointNo, jobId, this.now);
  }

  async job(jobId: string) {
    const job = await this.find(jobId);
    if (!job) throw new Error(`${jobId} is not there`);
    return job;
  }

  /** Reads a job, and changes it as it was read. */
  async change(jobId: string, change: Change) {
    return this.stores.jobs.change(await this.job(jobId), change, this.now);
  }

  append(jobId: string, workerNo: number, ...outputs: string[]) {
    const pieces = outputs.map((output) => ({ output }));
    return this.stores.chunks.append(this.endpointNo, jobId, workerNo, pieces);
  }

  tally() {
    return this.stores.tallies.tally(this.endpointNo);
  }

  deliveries() {
    return this.stores.deliveries.list([this.endpointNo], undefined, 100);
  }

  /** Brings a new job into a state, held by `workerNo` where it was taken, and leaves nothing else waiting. */
  async jobIn(status: JobStatus, workerNo: number, more: Partial<NewJob> = {}): Promise<string> {
    const id = await this.submit(more);
    if (status === "IN_QUEUE") return id;
    await this.takeOne(workerNo);
    if (status === "COMPLETED") await this.settle(id, workerNo);
    if (status === "FAILED") await this.settle(id, workerNo, failed("it broke"));
    if (status === "CANCELLED") await this.change(id, { by: "cancel" });
    if (status === "TIMED_OUT") await this.change(id, { by: "timeOut", error: "too slow" });
    expect((await this.job(id)).status).toBe(status);
    return id;
  }

  async reopen(): Promise<void> {
    this.stores = await this.#opened.reopen!();
  }

  end(): Promise<void> {
    return this.#opened.end();
  }
}

/** What every database promises of the queue. `open` makes an empty one; all else is done through the stores. */
export function storeContract(name: string, open: () => Promise<Opened>, { isKept = true } = {}): void {
  describe(name, () => {
    let scene: Scene;
    let first: number;
    let second: number;
    beforeEach(async () => {
      scene = await Scene.open(open);
      first = await scene.worker("worker00000001");
      second = await scene.worker("worker00000002");
    });
    afterEach(() => scene.end());

    describe("a job's life", () => {
      it("begins waiting, with nothing of a run", async () => {
        const id = await scene.submit({ lowPriority: true, executionTimeoutMs: 7_000, retentionMs: 60_000 });
        expect(await scene.job(id)).toMatchObject({
          id,
          status: "IN_QUEUE",
          lowPriority: true,
          starts: 0,
          excused: 0,
          retries: 0,
          workerNo: undefined,
          workerId: "",
          createdAt: startAt,
          queuedAt: startAt,
          takenAt: undefined,
          finishedAt: undefined,
          deadlineAt: undefined,
          ttlEndAt: startAt + day,
          expiresAt: startAt + day,
          executionTimeoutMs: 7_000,
          retentionMs: 60_000,
          hasWebhook: false,
          stopWanted: false,
          output: undefined,
          error: undefined,
          progress: undefined,
        });
      });

      it("hands a taken job over with all that was submitted, and counts the start", async () => {
        const id = await scene.submit({
          webhook: "https://example.com/hook",
          s3Config: "sealed",
          policy: '{"ttl":20000}',
          executionTimeoutMs: 9_000,
        });
        scene.now += 1_500;
        expect(await scene.takeOne(first)).toEqual({
          no: (await scene.job(id)).no,
          id,
          workerNo: first,
          starts: 1,
          takenAt: startAt + 1_500,
          queuedAt: startAt,
          deadlineAt: startAt + 10_500,
          input: '{"n":1}',
          webhook: "https://example.com/hook",
          s3Config: "sealed",
          policy: '{"ttl":20000}',
        });
        expect(await scene.job(id)).toMatchObject({
          status: "IN_PROGRESS",
          workerNo: first,
          workerId: "worker00000001",
          starts: 1,
          deadlineAt: startAt + 10_500,
        });
      });

      it("keeps progress while it runs, and drops it at the end", async () => {
        const id = await scene.jobIn("IN_PROGRESS", first);
        expect(await scene.stores.jobs.progress(scene.endpointNo, id, first, '"half"')).toBe(true);
        expect(await scene.stores.jobs.progress(scene.endpointNo, id, first, '"more"')).toBe(true);
        expect(await scene.job(id)).toMatchObject({ status: "IN_PROGRESS", progress: '"more"', output: undefined });
        await scene.settle(id, first, completed('{"a":1}'));
        expect(await scene.job(id)).toMatchObject({ status: "COMPLETED", progress: undefined, output: '{"a":1}' });
      });

      it("ends by its worker's word, with times and retention from that word", async () => {
        const id = await scene.submit({ retentionMs: 60_000 });
        scene.now += 200;
        await scene.takeOne(first);
        scene.now += 1_000;
        expect(await scene.settle(id, first, failed("it broke"))).toEqual({
          id,
          status: "FAILED",
          delivery: false,
          delayMs: 200,
          executionMs: 1_000,
        });
        expect(await scene.job(id)).toMatchObject({
          status: "FAILED",
          error: "it broke",
          finishedAt: startAt + 1_200,
          deadlineAt: undefined,
          expiresAt: startAt + 61_200,
          workerId: "worker00000001",
        });
      });

      it("never outlives its ttl by its retention", async () => {
        const id = await scene.submit({ ttlEndAt: startAt + 20_000, retentionMs: 60_000 });
        await scene.takeOne(first);
        await scene.settle(id, first);
        expect((await scene.job(id)).expiresAt).toBe(startAt + 20_000);
      });

      it("keeps the sentence of whoever ended it, and tells its worker to stop", async () => {
        const id = await scene.jobIn("TIMED_OUT", first);
        expect(await scene.job(id)).toMatchObject({ error: "too slow", stopWanted: true, deadlineAt: undefined });
        expect(idsOf(await scene.stores.reader.heldBy(first))).toEqual([id]);
        expect(idsOf(await scene.stores.reader.unstopped())).toEqual([id]);
      });

      it("does not ask a worker to stop what waited", async () => {
        const id = await scene.submit();
        expect(await scene.change(id, { by: "cancel" })).toMatchObject({ status: "CANCELLED", executionMs: 0 });
        expect(await scene.job(id)).toMatchObject({ stopWanted: false, error: undefined, workerId: "" });
        expect(await scene.stores.reader.unstopped()).toEqual([]);
      });

      it("starts over by a retry: at the back, with starts at 0 and nothing of the run before", async () => {
        const id = await scene.jobIn("IN_PROGRESS", first, { webhook: "https://example.com/hook" });
        await scene.change(id, { by: "giveBack", excused: false });
        await scene.takeOne(first);
        await scene.append(id, first, '"chunk"');
        await scene.settle(id, first, failed("it broke"));
        const later = await scene.submit();
        scene.now += 5_000;
        expect(await scene.change(id, { by: "retry" })).toMatchObject({ status: "IN_QUEUE" });
        const job = await scene.job(id);
        expect(job).toMatchObject({
          status: "IN_QUEUE",
          starts: 0,
          excused: 0,
          retries: 0,
          createdAt: startAt,
          queuedAt: startAt + 5_000,
          takenAt: undefined,
          finishedAt: undefined,
          expiresAt: startAt + day,
          hasWebhook: true,
          output: undefined,
          error: undefined,
        });
        expect(await scene.stores.chunks.read(job.no, 0, 1_000)).toEqual([]);
        expect(idsOf(await scene.take(first, 2))).toEqual([later, id]);
      });
    });

    describe("the job table", () => {
      const changes: Record<Exclude<JobEvent, "take" | "progress" | "complete">, Change> = {
        fail: { by: "fail", error: "lost too often" },
        giveBack: { by: "giveBack", excused: false },
        timeOut: { by: "timeOut", error: "too slow" },
        cancel: { by: "cancel" },
        retry: { by: "retry" },
      };
      const pairs = Object.entries(changes).flatMap(([event, change]) =>
        statuses.map((status) => [event as keyof typeof changes, status, change] as const),
      );
      it.each(pairs)("keeps to its row: %s of a job that is %s", async (event, status, change) => {
        const id = await scene.jobIn(status, first);
        const before = await scene.job(id);
        const tally = await scene.tally();
        const settled = await scene.stores.jobs.change(before, change, scene.now);
        const after = await scene.job(id);
        if (mayHappen(event, status)) {
          expect([settled?.status, after.status]).toEqual([transitions[event].to, transitions[event].to]);
        } else {
          expect(settled).toBeUndefined();
          expect(after).toEqual(before);
          expect(await scene.tally()).toEqual(tally);
        }
      });

      it.each(statuses)("takes only what waits: not a job that is %s", async (status) => {
        const id = await scene.jobIn(status, first);
        expect(idsOf(await scene.take(second))).toEqual(mayHappen("take", status) ? [id] : []);
      });

      it.each(statuses)("hears a worker's words only on what runs: not on a job that is %s", async (status) => {
        const id = await scene.jobIn(status, first);
        const runs = status === "IN_PROGRESS";
        expect(await scene.stores.jobs.progress(scene.endpointNo, id, first, "1")).toBe(runs);
        expect(await scene.append(id, first, "1")).toBe(runs);
        expect((await scene.settle(id, first, completed("2"))) !== undefined).toBe(runs);
        expect((await scene.job(id)).status).toBe(runs ? "COMPLETED" : status);
      });
    });

    describe("the holder's guard", () => {
      it("drops every word of a worker that lost its job", async () => {
        const id = await scene.jobIn("IN_PROGRESS", first);
        await scene.change(id, { by: "giveBack", excused: false });
        await scene.takeOne(second);
        expect(await scene.settle(id, first, completed('"late"'))).toBeUndefined();
        expect(await scene.stores.jobs.progress(scene.endpointNo, id, first, '"late"')).toBe(false);
        expect(await scene.append(id, first, '"late"')).toBe(false);
        expect(await scene.job(id)).toMatchObject({ status: "IN_PROGRESS", workerNo: second, progress: undefined });
        expect(await scene.settle(id, second, completed('"mine"'))).toMatchObject({ status: "COMPLETED" });
        expect((await scene.job(id)).output).toBe('"mine"');
      });

      it("lets one of two ends at the same moment win", async () => {
        const id = await scene.jobIn("IN_PROGRESS", first);
        const job = await scene.job(id);
        const [cancelled, done] = await Promise.all([
          scene.stores.jobs.change(job, { by: "cancel" }, scene.now),
          scene.settle(id, first, completed("1")),
        ]);
        expect([cancelled, done].filter(Boolean)).toHaveLength(1);
        expect((await scene.job(id)).status).toBe((cancelled ?? done)?.status);
        expect(await scene.tally()).toMatchObject({ running: 0, completed: done ? 1 : 0 });
      });

      it("applies a change only to the start that was read", async () => {
        const id = await scene.jobIn("IN_PROGRESS", first);
        const read = await scene.job(id);
        await scene.change(id, { by: "giveBack", excused: false });
        await scene.takeOne(second);
        for (const by of ["timeOut", "fail"] as const) {
          expect(await scene.stores.jobs.change(read, { by, error: "stale" }, scene.now)).toBeUndefined();
        }
        expect(await scene.stores.jobs.change(read, { by: "giveBack", excused: false }, scene.now)).toBeUndefined();
        expect(await scene.job(id)).toMatchObject({ status: "IN_PROGRESS", workerNo: second, starts: 2 });
      });

      it("applies a change only while the worker that was read holds the job", async () => {
        const id = await scene.jobIn("IN_PROGRESS", first);
        const read = await scene.job(id);
        await scene.settle(id, first, failed("it broke"));
        await scene.change(id, { by: "retry" });
        await scene.takeOne(second);
        // the same state and the same number of starts, but another worker
        expect(await scene.stores.jobs.change(read, { by: "timeOut", error: "stale" }, scene.now)).toBeUndefined();
        expect(await scene.job(id)).toMatchObject({ status: "IN_PROGRESS", workerNo: second });
      });

      it("takes a worker's last word on a stopped job as its being stopped, and nothing more", async () => {
        const id = await scene.jobIn("CANCELLED", first);
        expect(await scene.settle(id, second, completed("1"))).toBeUndefined();
        expect((await scene.job(id)).stopWanted).toBe(true);
        expect(await scene.settle(id, first, completed("1"))).toBeUndefined();
        expect(await scene.job(id)).toMatchObject({ status: "CANCELLED", stopWanted: false, output: undefined });
      });

      it("forgets a stop only for the worker it was meant for", async () => {
        const id = await scene.jobIn("CANCELLED", first);
        const { no } = await scene.job(id);
        await scene.stores.jobs.confirmStopped(second, [no]);
        expect(idsOf(await scene.stores.reader.heldBy(first))).toEqual([id]);
        await scene.stores.jobs.confirmStopped(first, [no]);
        expect(await scene.stores.reader.heldBy(first)).toEqual([]);
      });

      it("lists nothing to stop of a worker that has ended", async () => {
        await scene.jobIn("CANCELLED", first);
        await scene.stores.workers.save(first, { endedAt: scene.now });
        expect(await scene.stores.reader.unstopped()).toEqual([]);
      });
    });

    describe("taking", () => {
      it("gives each job to one taker only, in the order of submission", async () => {
        const ids = await scene.submitMany(50);
        const turns = await Promise.all(Array.from({ length: 30 }, (_, n) => scene.take(n % 2 ? first : second, 3)));
        const taken = turns.flatMap(idsOf);
        expect([...taken].sort()).toEqual([...ids].sort());
        for (const turn of turns) {
          const order = idsOf(turn).map((id) => ids.indexOf(id));
          expect(order).toEqual([...order].sort((a, b) => a - b));
        }
        expect(await scene.stores.tallies.holdings(scene.endpointNo)).toEqual(
          new Map([first, second].map((no) => [no, turns.flat().filter((job) => job.workerNo === no).length])),
        );
      });

      it("serves the first who asks first, and says whether anything was left", async () => {
        const ids = await scene.submitMany(4);
        const asks = [
          { workerNo: second, count: 2 },
          { workerNo: first, count: 1 },
        ];
        const turn = await scene.stores.jobs.take(scene.endpointNo, asks, scene.now);
        expect(turn.jobs.map(({ id, workerNo }) => [id, workerNo])).toEqual([
          [ids[0], second],
          [ids[1], second],
          [ids[2], first],
        ]);
        expect(turn.dry).toBe(false);
        const rest = await scene.stores.jobs.take(scene.endpointNo, asks, scene.now);
        expect([idsOf(rest.jobs), rest.dry]).toEqual([[ids[3]], true]);
      });

      it("hands out one endpoint's jobs only", async () => {
        const other = await scene.endpoint("endpoint000002");
        await scene.submit({ endpointNo: other });
        expect(await scene.take(first)).toEqual([]);
      });

      it("gives a worker that is not wanted running nothing, and serves the next", async () => {
        const third = await scene.worker("worker00000003");
        const fourth = await scene.worker("worker00000004");
        const ids = await scene.submitMany(2);
        await scene.stores.workers.save(first, { wanted: "closed" });
        await scene.stores.workers.save(second, { wanted: "stopped" });
        await scene.stores.workers.save(third, { endedAt: scene.now });
        const asks = [first, second, third, fourth].map((workerNo) => ({ workerNo, count: 1 }));
        const { jobs } = await scene.stores.jobs.take(scene.endpointNo, asks, scene.now);
        expect(jobs.map(({ id, workerNo }) => [id, workerNo])).toEqual([[ids[0], fourth]]);
      });

      it("gives a deleted endpoint neither jobs nor takers", async () => {
        await scene.submit();
        await scene.stores.endpoints.remove(scene.endpointNo, scene.now);
        expect(await scene.take(first)).toEqual([]);
        expect(await scene.stores.jobs.submit(scene.newJob())).toEqual({ kind: "closed" });
        expect(await scene.tally()).toMatchObject({ waiting: 1 });
      });

      it("puts a job that was given back at the front", async () => {
        const ids = await scene.submitMany(3);
        await scene.take(first, 2);
        await scene.change(ids[1]!, { by: "giveBack", excused: false });
        expect(idsOf(await scene.take(second, 2))).toEqual([ids[1], ids[2]]);
      });

      it("counts a start that was lost, and excuses one that we took back", async () => {
        const id = await scene.submit();
        await scene.takeOne(first);
        await scene.change(id, { by: "giveBack", excused: false });
        expect(await scene.job(id)).toMatchObject({ starts: 1, excused: 0, retries: 1 });
        await scene.takeOne(first);
        await scene.change(id, { by: "giveBack", excused: true });
        expect(await scene.job(id)).toMatchObject({
          status: "IN_QUEUE",
          starts: 2,
          excused: 1,
          retries: 1,
          takenAt: undefined,
          deadlineAt: undefined,
          queuedAt: startAt,
        });
        expect(await scene.tally()).toMatchObject({ waiting: 1, running: 0, retried: 1 });
      });
    });

    describe("an idempotency key", () => {
      const key = (more: object = {}) => ({
        keyHash: "key-hash",
        bodyHash: "body-hash",
        route: "run",
        expiresAt: scene.now + limits.idempotencyMs,
        ...more,
      });

      it("gives the first job again, with its present state, and makes no second one", async () => {
        const id = await scene.submit({ idempotency: key() });
        await scene.takeOne(first);
        expect(await scene.stores.jobs.submit(scene.newJob({ idempotency: key() }))).toEqual({
          kind: "known",
          record: { jobId: id, bodyHash: "body-hash", route: "run", lastStatus: "IN_PROGRESS" },
        });
        expect(await scene.tally()).toMatchObject({ waiting: 0, running: 1 });
      });

      it("gives one job to many who submit at once", async () => {
        const replies = await Promise.all(
          Array.from({ length: 20 }, () => scene.stores.jobs.submit(scene.newJob({ idempotency: key() }))),
        );
        expect(replies.filter(({ kind }) => kind === "submitted")).toHaveLength(1);
        expect(await scene.tally()).toMatchObject({ waiting: 1 });
      });

      it("tells what body and route it came with, whatever comes now", async () => {
        await scene.submit({ idempotency: key({ bodyHash: "first", route: "runsync" }) });
        const again = await scene.stores.jobs.submit(scene.newJob({ idempotency: key({ bodyHash: "other" }) }));
        expect(again).toMatchObject({ kind: "known", record: { bodyHash: "first", route: "runsync" } });
      });

      it("belongs to one endpoint", async () => {
        const other = await scene.endpoint("endpoint000002");
        await scene.submit({ idempotency: key() });
        await scene.submit({ endpointNo: other, idempotency: key() });
      });

      it("outlives its job, with the job's last state", async () => {
        const id = await scene.submit({ idempotency: key(), retentionMs: 60_000 });
        await scene.takeOne(first);
        await scene.settle(id, first, failed("it broke"));
        scene.now += 60_000;
        expect(await scene.stores.jobs.sweep(scene.now, 100)).toMatchObject({ deleted: 1 });
        expect(await scene.stores.jobs.submit(scene.newJob({ idempotency: key() }))).toMatchObject({
          kind: "known",
          record: { jobId: id, lastStatus: "FAILED" },
        });
      });

      it("is not touched by what becomes of later jobs", async () => {
        const early = await scene.submit({ idempotency: key(), retentionMs: 60_000 });
        await scene.takeOne(first);
        await scene.settle(early, first);
        scene.now += 60_000;
        await scene.stores.jobs.sweep(scene.now, 100);
        const later = await scene.submit({ idempotency: key({ keyHash: "another" }), retentionMs: 60_000 });
        await scene.takeOne(first);
        await scene.settle(later, first, failed("it broke"));
        scene.now += 60_000;
        await scene.stores.jobs.sweep(scene.now, 100);
        expect(await scene.stores.jobs.submit(scene.newJob({ idempotency: key() }))).toMatchObject({
          record: { jobId: early, lastStatus: "COMPLETED" },
        });
      });

      it("ends after 24 hours, swept or not", async () => {
        const id = await scene.submit({ idempotency: key() });
        scene.now += limits.idempotencyMs - 1;
        expect(await scene.stores.jobs.submit(scene.newJob({ idempotency: key() }))).toMatchObject({ kind: "known" });
        scene.now += 1;
        const again = await scene.submit({ idempotency: key() });
        expect(again).not.toBe(id);
        await scene.stores.jobs.sweep(scene.now, 100);
        expect(await scene.stores.jobs.submit(scene.newJob({ idempotency: key() }))).toMatchObject({
          record: { jobId: again },
        });
      });

      it("is not kept of a submission that was refused", async () => {
        const taken = await scene.submit();
        await expect(scene.stores.jobs.submit(scene.newJob({ id: taken, idempotency: key() }))).rejects.toThrow();
        await scene.submit({ idempotency: key() });
      });
    });

    describe("expiry", () => {
      it("hides a job at once, and sweeps it later", async () => {
        const id = await scene.submit({ ttlEndAt: startAt + 10_000 });
        const { no, place } = await scene.job(id);
        scene.now = startAt + 9_999;
        expect(await scene.find(id)).toBeDefined();
        scene.now = startAt + 10_000;
        expect(await scene.find(id)).toBeUndefined();
        expect(await scene.stores.reader.list(scene.endpointNo, { limit: 10 }, scene.now)).toEqual([]);
        expect(await scene.take(first)).toEqual([]);
        expect(await scene.stores.reader.nextExpiry()).toBe(startAt + 10_000);
        expect(await scene.stores.jobs.sweep(scene.now, 10)).toEqual({ deleted: 1, stopped: [], more: false });
        expect(await scene.stores.reader.submission(no)).toBeUndefined();
        expect(await scene.stores.reader.nextExpiry()).toBeUndefined();
        expect(await scene.tally()).toMatchObject({ waiting: 0, waitingNormal: 0 });
        expect(place).toBeLessThanOrEqual(await scene.stores.reader.lastPlace());
      });

      it("looks past expired jobs for one that still waits", async () => {
        await scene.submit({ ttlEndAt: startAt + 10_000 });
        const id = await scene.submit();
        scene.now += 10_000;
        expect(idsOf(await scene.take(first))).toEqual([id]);
      });

      it("stops what still runs, drops its late result, and deletes it when its worker has stopped", async () => {
        const id = await scene.jobIn("IN_PROGRESS", first, {
          ttlEndAt: startAt + 10_000,
          webhook: "https://example.com/hook",
        });
        scene.now += 10_000;
        expect(await scene.settle(id, first)).toBeUndefined();
        const { deleted, stopped } = await scene.stores.jobs.sweep(scene.now, 10);
        expect([deleted, idsOf(stopped), stopped[0]?.workerNo]).toEqual([0, [id], first]);
        expect(idsOf(await scene.stores.reader.heldBy(first))).toEqual([id]);
        expect(await scene.find(id)).toBeUndefined();
        expect(await scene.tally()).toMatchObject({ running: 0 });
        await scene.stores.jobs.confirmStopped(first, [stopped[0]!.no]);
        expect(await scene.stores.jobs.sweep(scene.now, 10)).toMatchObject({ deleted: 1 });
        expect(await scene.deliveries()).toEqual([]);
      });

      it("sweeps in batches, the oldest first, and says whether more is there", async () => {
        for (const n of [3, 1, 2]) await scene.submit({ id: `old-${n}`, ttlEndAt: startAt + n * 1_000 });
        scene.now += 3_000;
        expect(await scene.stores.jobs.sweep(scene.now, 2)).toMatchObject({ deleted: 2, more: true });
        expect(await scene.stores.reader.nextExpiry()).toBe(startAt + 3_000);
        expect(await scene.stores.jobs.sweep(scene.now, 2)).toMatchObject({ deleted: 1, more: false });
      });

      it("keeps a job while its webhook is still to be delivered", async () => {
        const id = await scene.jobIn("COMPLETED", first, { webhook: "https://example.com/hook", retentionMs: 60_000 });
        scene.now += 60_000;
        expect(await scene.find(id)).toBeUndefined();
        expect(await scene.stores.jobs.sweep(scene.now, 10)).toMatchObject({ deleted: 0 });
        const [delivery] = await scene.deliveries();
        const attempt = { at: scene.now, status: 200, error: undefined, durationMs: 5 };
        await scene.stores.deliveries.record(delivery!.no, attempt, { state: "delivered" });
        expect(await scene.stores.jobs.sweep(scene.now, 10)).toMatchObject({ deleted: 1 });
      });

      it("follows a ttl that was set anew", async () => {
        const id = await scene.submit();
        const { no } = await scene.job(id);
        expect(await scene.stores.jobs.setTtl(no, startAt + 20_000, scene.now)).toBe(true);
        expect((await scene.job(id)).expiresAt).toBe(startAt + 20_000);
        await scene.takeOne(first);
        await scene.settle(id, first);
        expect(await scene.stores.jobs.setTtl(no, startAt + 2 * day, scene.now)).toBe(true);
        expect((await scene.job(id)).expiresAt).toBe(startAt + limits.runRetentionMs);
        expect(await scene.stores.jobs.setTtl(no, startAt - 1, scene.now)).toBe(true);
        expect(await scene.find(id)).toBeUndefined();
        expect(await scene.stores.jobs.setTtl(no, startAt + day, scene.now)).toBe(false);
      });

      it("cannot be undone by a retry", async () => {
        const id = await scene.jobIn("FAILED", first, { retentionMs: 60_000 });
        const read = await scene.job(id);
        scene.now += 60_000;
        expect(await scene.stores.jobs.change(read, { by: "retry" }, scene.now)).toBeUndefined();
      });
    });

    describe("cancelling all that waits", () => {
      it("ends waiting jobs up to a place, a batch at a time, and leaves the rest", async () => {
        const running = await scene.jobIn("IN_PROGRESS", first);
        const ids = await scene.submitMany(3);
        await scene.submit({ lowPriority: true });
        const upTo = await scene.stores.reader.lastPlace();
        const late = await scene.submit();
        const cancel = () => scene.stores.jobs.cancelWaiting(scene.endpointNo, upTo, "purged", scene.now, 3);
        expect(idsOf(await cancel()).sort()).toEqual(ids);
        expect(await cancel()).toHaveLength(1);
        expect(await cancel()).toEqual([]);
        expect(await scene.job(ids[0]!)).toMatchObject({ status: "CANCELLED", error: "purged", finishedAt: scene.now });
        expect([(await scene.job(running)).status, (await scene.job(late)).status]).toEqual([
          "IN_PROGRESS",
          "IN_QUEUE",
        ]);
        expect(await scene.tally()).toMatchObject({ waiting: 1, waitingNormal: 1, running: 1 });
      });

      it("does not count what has expired", async () => {
        await scene.submit({ ttlEndAt: startAt + 10_000, webhook: "https://example.com/hook" });
        scene.now += 10_000;
        const upTo = await scene.stores.reader.lastPlace();
        expect(await scene.stores.jobs.cancelWaiting(scene.endpointNo, upTo, "purged", scene.now, 10)).toEqual([]);
        expect(await scene.deliveries()).toEqual([]);
      });
    });

    describe("reads", () => {
      it("list the newest first, by state, page by page", async () => {
        const ids = await scene.submitMany(4);
        const taken = idsOf(await scene.take(first, 2));
        const list = async (query: { status?: JobStatus; beforeNo?: number }) =>
          await scene.stores.reader.list(scene.endpointNo, { limit: 3, ...query }, scene.now);
        const page = await list({});
        expect(idsOf(page)).toEqual(ids.slice(1).reverse());
        expect(idsOf(await list({ beforeNo: page[2]!.no }))).toEqual([ids[0]]);
        expect(idsOf(await list({ status: "IN_PROGRESS" }))).toEqual(taken.reverse());
        expect(await list({ status: "FAILED" })).toEqual([]);
      });

      it("find what is overdue, the longest first, and when to look next", async () => {
        const slow = await scene.submit({ executionTimeoutMs: 9_000 });
        const fast = await scene.submit({ executionTimeoutMs: 5_000 });
        await scene.take(first, 2);
        expect(await scene.stores.reader.nextDeadline()).toBe(startAt + 5_000);
        expect(await scene.stores.reader.overdue(startAt + 4_999, 10)).toEqual([]);
        expect(idsOf(await scene.stores.reader.overdue(startAt + 5_000, 10))).toEqual([fast]);
        expect(idsOf(await scene.stores.reader.overdue(startAt + 9_000, 10))).toEqual([fast, slow]);
        expect(idsOf(await scene.stores.reader.overdue(startAt + 9_000, 1))).toEqual([fast]);
      });

      it("count the jobs before a place, up to a bound", async () => {
        const ids = await scene.submitMany(5);
        const { place } = await scene.job(ids[3]!);
        expect(await scene.stores.reader.position(scene.endpointNo, place, 100)).toBe(3);
        expect(await scene.stores.reader.position(scene.endpointNo, place, 2)).toBe(2);
      });

      it("know since when the oldest normal job waits", async () => {
        await scene.submit({ lowPriority: true });
        expect(await scene.stores.tallies.oldestWaiting(scene.endpointNo)).toBeUndefined();
        scene.now += 1_000;
        await scene.submit();
        scene.now += 1_000;
        await scene.submit();
        expect(await scene.stores.tallies.oldestWaiting(scene.endpointNo)).toBe(startAt + 1_000);
      });

      it("count for each live worker what it holds", async () => {
        await scene.submitMany(3);
        await scene.take(first, 3);
        expect(await scene.stores.tallies.holdings(scene.endpointNo)).toEqual(
          new Map([
            [first, 3],
            [second, 0],
          ]),
        );
      });
    });

    describe("chunks", () => {
      it("are handed out once, in order, up to a number of bytes, and one at least", async () => {
        const id = await scene.jobIn("IN_PROGRESS", first);
        const { no } = await scene.job(id);
        const { chunks } = scene.stores;
        await chunks.append(scene.endpointNo, id, first, [{ output: '"aaaaaaaaaaaa"', metrics: '{"m":1}' }]);
        await scene.append(id, first, '"bb"', '"cc"', '"dd"');
        expect(await chunks.handOut(no, 5)).toEqual({
          chunks: [{ index: 0, start: 1, output: '"aaaaaaaaaaaa"', metrics: '{"m":1}' }],
          more: true,
        });
        const next = await chunks.handOut(no, 9);
        expect([next.chunks.map(({ index }) => index), next.more]).toEqual([[1, 2], true]);
        const last = await chunks.handOut(no, 1_000);
        expect([last.chunks.map(({ output }) => output), last.more]).toEqual([['"dd"'], false]);
        expect(await chunks.handOut(no, 1_000)).toEqual({ chunks: [], more: false });
      });

      it("count their bytes, not their characters", async () => {
        const id = await scene.jobIn("IN_PROGRESS", first);
        const { no } = await scene.job(id);
        await scene.append(id, first, '"漢漢漢"', '"漢漢漢"');
        expect((await scene.stores.chunks.handOut(no, 21)).chunks).toHaveLength(1);
      });

      it("go to one reader each, however many read at once", async () => {
        const id = await scene.jobIn("IN_PROGRESS", first);
        const { no } = await scene.job(id);
        await scene.append(id, first, ...Array.from({ length: 40 }, (_, n) => `${n + 100}`));
        const handed = await Promise.all(Array.from({ length: 30 }, () => scene.stores.chunks.handOut(no, 6)));
        expect(handed.flatMap(({ chunks }) => chunks.map(({ index }) => index))).toEqual(
          Array.from({ length: 40 }, (_, n) => n),
        );
      });

      it("come back where a reply could not deliver them, unless something was handed out since", async () => {
        const id = await scene.jobIn("IN_PROGRESS", first);
        const { no } = await scene.job(id);
        const { chunks } = scene.stores;
        await scene.append(id, first, "1", "2");
        const lost = (await chunks.handOut(no, 1)).chunks;
        await chunks.handBack(no, lost);
        const again = (await chunks.handOut(no, 1)).chunks;
        expect(again).toEqual(lost);
        await chunks.handOut(no, 1);
        await chunks.handBack(no, again);
        expect(await chunks.handOut(no, 1)).toEqual({ chunks: [], more: false });
      });

      it("do not come back into a later start", async () => {
        const id = await scene.jobIn("IN_PROGRESS", first);
        const { no } = await scene.job(id);
        await scene.append(id, first, '"old"');
        const lost = (await scene.stores.chunks.handOut(no, 100)).chunks;
        await scene.change(id, { by: "giveBack", excused: false });
        await scene.takeOne(second);
        await scene.append(id, second, '"new"');
        expect((await scene.stores.chunks.handOut(no, 100)).chunks).toMatchObject([{ start: 2, output: '"new"' }]);
        await scene.stores.chunks.handBack(no, lost);
        expect((await scene.stores.chunks.handOut(no, 100)).chunks).toEqual([]);
      });

      it("begin at 0 again in each start", async () => {
        const id = await scene.jobIn("IN_PROGRESS", first);
        const { no } = await scene.job(id);
        await scene.append(id, first, "1", "2");
        await scene.stores.chunks.handOut(no, 1);
        await scene.change(id, { by: "giveBack", excused: false });
        expect(await scene.stores.chunks.handOut(no, 100)).toEqual({ chunks: [], more: false });
        await scene.takeOne(first);
        await scene.append(id, first, "3");
        expect(await scene.stores.chunks.handOut(no, 100)).toEqual({
          chunks: [{ index: 0, start: 2, output: "3", metrics: undefined }],
          more: false,
        });
      });

      it("can be read again and again, from any of them on", async () => {
        const id = await scene.jobIn("IN_PROGRESS", first);
        const { no } = await scene.job(id);
        await scene.append(id, first, "10", "20", "30");
        await scene.settle(id, first);
        const read = async (from: number) => (await scene.stores.chunks.read(no, from, 4)).map(({ output }) => output);
        expect([await read(0), await read(0), await read(2), await read(3)]).toEqual([
          ["10", "20"],
          ["10", "20"],
          ["30"],
          [],
        ]);
        expect((await scene.stores.chunks.handOut(no, 100)).chunks).toHaveLength(3);
      });
    });

    describe("deliveries", () => {
      const webhook = "https://example.com/hook";
      const attempt = (at: number) => ({ at, status: 500, error: undefined, durationMs: 7 });

      it.each(statuses.filter(isFinal))("are made in the same commit as the end: %s", async (status) => {
        const id = await scene.jobIn(status, first, { webhook });
        const [delivery] = await scene.stores.deliveries.due(scene.now, 10);
        expect(delivery).toMatchObject({ jobId: id, url: webhook, state: "pending", tries: 0, nextAt: scene.now });
        expect(await scene.stores.deliveries.nextDue()).toBe(scene.now);
      });

      it("are made by a purge, and not for jobs without a webhook", async () => {
        await scene.jobIn("COMPLETED", first);
        const [hooked, plain] = [await scene.submit({ webhook }), await scene.submit()];
        const upTo = await scene.stores.reader.lastPlace();
        const cancelled = await scene.stores.jobs.cancelWaiting(scene.endpointNo, upTo, "purged", scene.now, 10);
        expect(new Map(cancelled.map(({ id, delivery }) => [id, delivery]))).toEqual(
          new Map([
            [hooked, true],
            [plain, false],
          ]),
        );
        expect((await scene.deliveries()).map(({ jobId }) => jobId)).toEqual([hooked]);
      });

      it("are not made twice by words that come twice", async () => {
        const id = await scene.jobIn("COMPLETED", first, { webhook });
        await scene.settle(id, first);
        expect(await scene.deliveries()).toHaveLength(1);
      });

      it("wait for their next time, and tell each attempt", async () => {
        await scene.jobIn("COMPLETED", first, { webhook });
        const no = (await scene.deliveries())[0]!.no;
        await scene.stores.deliveries.record(no, attempt(scene.now), { state: "pending", nextAt: scene.now + 10_000 });
        expect(await scene.stores.deliveries.due(scene.now + 9_999, 10)).toEqual([]);
        expect(await scene.stores.deliveries.due(scene.now + 10_000, 10)).toMatchObject([{ no, tries: 1 }]);
        await scene.stores.deliveries.record(no, attempt(scene.now + 10_000), { state: "failed" });
        expect(await scene.stores.deliveries.nextDue()).toBeUndefined();
        expect(await scene.deliveries()).toMatchObject([
          { state: "failed", tries: 2, attempts: [{ at: scene.now }, { at: scene.now + 10_000 }] },
        ]);
      });

      it("are superseded by a retry, whose end makes a new one with another id", async () => {
        const id = await scene.jobIn("FAILED", first, { webhook });
        const [old] = await scene.deliveries();
        await scene.change(id, { by: "retry" });
        expect(await scene.stores.deliveries.nextDue()).toBeUndefined();
        await scene.stores.deliveries.record(old!.no, attempt(scene.now), { state: "pending", nextAt: scene.now });
        expect(await scene.stores.deliveries.due(scene.now, 10)).toEqual([]);
        await scene.takeOne(first);
        await scene.settle(id, first);
        const [made] = await scene.stores.deliveries.due(scene.now, 10);
        expect(made!.jobId).toBe(id);
        expect(made!.webhookId).not.toBe(old!.webhookId);
      });

      it("are forgotten some time after their end, never before it", async () => {
        await scene.jobIn("COMPLETED", first, { webhook });
        await scene.jobIn("COMPLETED", first, { webhook });
        const no = (await scene.deliveries())[0]!.no;
        await scene.stores.deliveries.record(no, attempt(scene.now), { state: "delivered" });
        await scene.stores.deliveries.forget(scene.now + day);
        expect(await scene.deliveries()).toMatchObject([{ state: "pending" }]);
      });
    });

    describe("texts and numbers", () => {
      const traps = {
        "a number beyond 64 bits": '{"n":12345678901234567890,"e":1e400}',
        "names in their order, some of them twice": '{"b":1,"a":2,"b":3,"__proto__":{"x":1}}',
        "blanks and escapes": '{ "a" :\t"\\u0000\\ud800\\/" ,\n"b": [ ] }',
        "letters of every plane": '{"a":"é漢\u2028😀"}',
        "a text of 20 MB": `{"a":"${"x".repeat(limits.runsyncBytesMax - 8)}"}`,
      };
      it.each(Object.entries(traps))("pass unchanged: %s", async (_, text) => {
        const id = await scene.submit({ body: text });
        expect((await scene.takeOne(first)).input === text).toBe(true);
        await scene.append(id, first, text);
        await scene.stores.jobs.progress(scene.endpointNo, id, first, text);
        const running = await scene.job(id);
        expect(running.progress === text).toBe(true);
        await scene.settle(id, first, completed(text));
        expect((await scene.job(id)).output === text).toBe(true);
        expect((await scene.stores.reader.submission(running.no))?.input === text).toBe(true);
        expect((await scene.stores.chunks.handOut(running.no, 1)).chunks[0]?.output === text).toBe(true);
      });

      it("keep a NUL in a sentence", async () => {
        const id = await scene.jobIn("IN_PROGRESS", first);
        await scene.settle(id, first, failed("a\u0000b"));
        expect((await scene.job(id)).error).toBe("a\u0000b");
      });

      it("tell an empty text from none", async () => {
        const none = await scene.jobIn("COMPLETED", first);
        const empty = await scene.jobIn("IN_PROGRESS", first);
        await scene.settle(empty, first, completed('""'));
        expect([(await scene.job(none)).output, (await scene.job(empty)).output]).toEqual([undefined, '""']);
      });
    });

    describe("a group of writes", () => {
      it("loses only its bad row", async () => {
        const id = await scene.submit();
        const jobs = [scene.newJob(), scene.newJob({ id }), scene.newJob()];
        const outcomes = await Promise.allSettled(jobs.map((job) => scene.stores.jobs.submit(job)));
        expect(outcomes.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
        expect(await scene.tally()).toMatchObject({ waiting: 3 });
        expect(await scene.stores.tallies.recount(scene.endpointNo)).toEqual(await scene.tally());
        expect(idsOf(await scene.take(first, 5))).toEqual([id, jobs[0]!.id, jobs[2]!.id]);
      });
    });

    // a database in memory keeps nothing
    if (isKept)
      describe("after it is opened again", () => {
        it("keeps all that was acknowledged, and goes on in the same order", async () => {
          const waiting = await scene.submitMany(2);
          await scene.takeOne(first);
          await scene.append(waiting[0]!, first, '"chunk"');
          const done = await scene.jobIn("IN_QUEUE", first, { webhook: "https://example.com/hook" });
          await scene.change(done, { by: "cancel", error: "no more" });
          const before = await Promise.all([...waiting, done].map((id) => scene.job(id)));
          const tally = await scene.tally();
          const deliveries = await scene.deliveries();
          await scene.reopen();
          expect(await Promise.all([...waiting, done].map((id) => scene.job(id)))).toEqual(before);
          expect([await scene.tally(), await scene.deliveries()]).toEqual([tally, deliveries]);
          const late = await scene.submit();
          expect(idsOf(await scene.take(second, 2))).toEqual([waiting[1], late]);
          expect(await scene.settle(waiting[0]!, first)).toMatchObject({ status: "COMPLETED" });
          expect((await scene.stores.chunks.handOut(before[0]!.no, 10)).chunks).toHaveLength(1);
        });
      });

    it("answers a ping", async () => {
      await scene.stores.ping();
    });
  });
}
