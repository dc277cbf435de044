import { expect } from "vitest";
import { endpointDefaults } from "../../domain/endpoints/endpoint.js";
import type { Change, JobStatus, JsonText, Verdict } from "../../domain/jobs/job.js";
import { limits } from "../../limits/index.js";
import type { NewJob, Stores, TakenJob } from "../../store/index.js";
import { plainTemplate } from "../../testing/facts-fixture.js";

/** A database opened for the contract, empty at first. */
export interface Opened {
  readonly stores: Stores;
  /** Closes it and opens it again with its content; undefined if it keeps nothing. */
  readonly reopen: (() => Promise<Stores>) | undefined;
  end(): Promise<void>;
}

export const startAt = 1_790_000_000_000;
export const day = 24 * 3_600_000;
export const statuses: readonly JobStatus[] = [
  "IN_QUEUE",
  "IN_PROGRESS",
  "COMPLETED",
  "FAILED",
  "CANCELLED",
  "TIMED_OUT",
];
export const completed = (output?: JsonText) => ({ status: "COMPLETED", output }) as const;
export const failed = (error: string) => ({ status: "FAILED", error, output: undefined }) as const;
export const idsOf = (jobs: readonly { id: string }[]) => jobs.map(({ id }) => id);

/** One endpoint with workers over a database, with a clock that tests move. */
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
    const made = { id, ownerNo: 1, settings, createdAt: this.now };
    return (await this.stores.endpoints.create({ ...made, template: plainTemplate })).no;
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
    return (await this.stores.jobs.take({ endpointNo: this.endpointNo, asks: [{ workerNo, count }], now: this.now }))
      .jobs;
  }

  async takeOne(workerNo: number): Promise<TakenJob> {
    const [job] = await this.take(workerNo);
    if (!job) throw new Error("nothing was waiting");
    return job;
  }

  settle(jobId: string, workerNo: number, verdict: Verdict = completed()) {
    return this.stores.jobs.settle({ endpointNo: this.endpointNo, jobId, workerNo, verdict, now: this.now });
  }

  find(jobId: string) {
    return this.stores.reader.find({ endpointNo: this.endpointNo, jobId, now: this.now });
  }

  async job(jobId: string) {
    const job = await this.find(jobId);
    if (!job) throw new Error(`${jobId} is not there`);
    if (job.unreadBytes === 0) return job;
    const { output, error, progress } = (await this.findTexts(jobId))?.texts ?? {};
    const whole = (pieces: readonly Uint8Array[] | undefined) => pieces && Buffer.concat(pieces).toString();
    return { ...job, output: whole(output), error: whole(error), progress: whole(progress) };
  }

  findTexts(jobId: string, bytesMax = limits.outputBytesHard) {
    return this.stores.reader.findTexts({ endpointNo: this.endpointNo, jobId, now: this.now, bytesMax });
  }

  /** Reads a job and applies a change to it as it was read. */
  async change(jobId: string, change: Change) {
    return this.stores.jobs.change({ job: await this.job(jobId), change, now: this.now });
  }

  append(jobId: string, workerNo: number, ...outputs: JsonText[]) {
    const pieces = outputs.map((output) => ({ output }));
    return this.stores.chunks.append({ endpointNo: this.endpointNo, jobId, workerNo, chunks: pieces });
  }

  tally() {
    return this.stores.tallies.tally(this.endpointNo);
  }

  deliveries() {
    return this.stores.deliveries.list({ endpointNos: [this.endpointNo], limit: 100 });
  }

  /** Brings a new job into a state, held by `workerNo` if it was taken, and leaves no other job waiting. */
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

/** Every test begins with an empty database with one endpoint and two of its workers. */
export interface Setting {
  readonly scene: Scene;
  readonly first: number;
  readonly second: number;
}
