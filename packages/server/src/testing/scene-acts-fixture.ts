import { expect } from "vitest";
import { PlainSignal } from "../clock.js";
import type { ApiKey, Scope } from "../domain/access/key.js";
import type { Quotas, User } from "../domain/access/user.js";
import type { Endpoint } from "../domain/endpoints/endpoint.js";
import type { MillraceEvent } from "../events.js";
import type { LiveWorker } from "../memory/registry.js";
import { createEndpoint } from "../operations/endpoints/save-endpoint.js";
import { appendChunk, finishJob } from "../operations/jobs/finish-job.js";
import { lendStatus } from "../operations/jobs/lend-status.js";
import { describeJob, findJob } from "../operations/jobs/read-job.js";
import { type Submit, submitJob } from "../operations/jobs/submit-job.js";
import { takeJobs, tookOver } from "../operations/jobs/take-jobs.js";
import type { Parts } from "../operations/needs.js";
import { createTemplate } from "../operations/templates/save-template.js";
import { awaitStops, hearPing } from "../operations/workers/hear-ping.js";
import { endWorker } from "../operations/workers/worker-life.js";
import type { Stores, TakenJob } from "../store/index.js";
import { plainKey, plainUser } from "./facts-fixture.js";
import type { MovableClock } from "./movable-clock-fixture.js";

/** What users, clients and workers do in a scene. */
export abstract class SceneActs {
  abstract readonly stores: Stores;
  abstract readonly parts: Parts;
  abstract readonly events: MillraceEvent[];
  /** The admin's key with every right, as text and as the registry knows it. */
  key = "";
  admin!: ApiKey;
  abstract get clock(): MovableClock;
  abstract get directory(): string;
  /** The signal of a client that stays connected until the scene ends. */
  abstract get stays(): AbortSignal;
  /** Runs everything that needs no time. */
  abstract settle: () => Promise<void>;

  // users and their keys

  async user({ isAdmin }: { isAdmin: boolean }): Promise<number> {
    const id = `user_${this.parts.ids.resource()}`;
    const webhookSecret = this.parts.vault.seal(`whsec_${Buffer.alloc(24, 5).toString("base64")}`);
    return (await this.parts.registry.createUser({ ...plainUser, id, name: id, isAdmin, webhookSecret })).no;
  }

  /** Gives the admin these quotas. */
  async quotas(quotas: Quotas): Promise<void> {
    const user = this.parts.registry.user(this.admin.ownerNo) as User;
    await this.parts.registry.saveUser({ ...user, terms: { ...user.terms, quotas } });
  }

  async addKey(key: string, ownerNo: number, scope: Scope = { kind: "everything" }): Promise<ApiKey> {
    const hash = this.parts.vault.hash(key);
    const id = this.parts.ids.resource();
    return this.parts.registry.createKey({ ...plainKey, id, hash, ownerNo, scope, prefix: key.slice(0, 6) });
  }

  /** Another user without admin rights, with a key for all of their resources. */
  async stranger(): Promise<{ key: string; caller: ApiKey }> {
    const key = `mr_stranger-${this.parts.ids.resource()}`;
    return { key, caller: await this.addKey(key, await this.user({ isAdmin: false })) };
  }

  // endpoints and workers

  #templates = 0;
  template(more: Parameters<typeof createTemplate>[2] = {}, caller = this.admin) {
    this.#templates++;
    const made = { name: `template ${this.#templates}`, imageName: this.directory, ...more };
    return createTemplate(this.parts, caller, made);
  }

  async endpoint(more: Parameters<typeof createEndpoint>[2] = {}, caller = this.admin): Promise<Endpoint> {
    const templateId = more.templateId ?? (await this.template({}, caller)).id;
    return createEndpoint(this.parts, caller, { name: "scene", ...more, templateId });
  }

  /** The endpoint's present state. */
  now = (endpoint: Endpoint): Endpoint => this.parts.registry.endpointByNo(endpoint.no) as Endpoint;
  workersOf = (endpoint: Endpoint): LiveWorker[] => this.parts.registry.workersOf(endpoint.no);

  /** A worker that was started and has not called yet; it is left alone unless a test runs loops. */
  async worker(endpoint: Endpoint): Promise<LiveWorker> {
    const { registry, ids, clock, here, vault } = this.parts;
    const { version } = this.now(endpoint);
    const made = { id: ids.resource(), endpointNo: endpoint.no, version, hostNo: here.hostNo };
    const worker = await registry.createWorker({ ...made, createdAt: clock.now() });
    const told = { secretHash: vault.hash(secretOf(worker)), workerUrl: "http://127.0.0.1:8000" };
    await registry.changeWorker(worker, { by: "prepare", ...told });
    await registry.changeWorker(worker, { by: "start", startedAt: clock.now() });
    return worker;
  }

  /** Lets a worker's poll find nothing: it is idle from then on. */
  async idle(worker: LiveWorker): Promise<void> {
    await this.take(worker);
    await this.settle();
  }

  crash = (worker: LiveWorker) => endWorker(this.parts, worker, { code: 1, note: "no module" }, "it ended");

  // jobs

  submission(endpoint: Endpoint, body: unknown = { input: {} }, more: Partial<Submit> = {}): Submit {
    const bytes = Buffer.isBuffer(body) ? body : Buffer.from(typeof body === "string" ? body : JSON.stringify(body));
    const rest = { waitMs: undefined, idempotencyKey: undefined, requestId: "r" };
    return { endpoint, route: "run", ...rest, ...more, body: bytes };
  }

  /** Submits a job and returns its id. */
  async submit(endpoint: Endpoint, body?: unknown, more?: Partial<Submit>): Promise<string> {
    return (await submitJob(this.parts, this.submission(endpoint, body, more))).jobId;
  }

  submitMany = (endpoint: Endpoint, count: number, body?: unknown): Promise<string[]> =>
    Promise.all(Array.from({ length: count }, () => this.submit(endpoint, body)));

  /** A worker's poll: how to read its answer, and how to disconnect it. */
  poll(worker: LiveWorker, { count = 1, holdsNothing = false, isBusy = false } = {}) {
    const client = new AbortController();
    const leave = () => client.abort();
    this.stays.addEventListener("abort", leave, { once: true });
    const poll = { jobs: undefined as TakenJob[] | undefined, leave, answer: Promise.resolve() };
    poll.answer = takeJobs(this.parts, { worker, count, holdsNothing, isBusy, gone: client.signal }).then((jobs) => {
      poll.jobs = jobs;
      tookOver(worker, jobs);
      this.stays.removeEventListener("abort", leave);
    });
    return poll;
  }

  /** A poll that disconnects if it finds no job at once. */
  async take(worker: LiveWorker, options: Parameters<SceneActs["poll"]>[1] = {}): Promise<TakenJob[]> {
    const poll = this.poll(worker, options);
    await this.settle();
    poll.leave();
    await poll.answer;
    return poll.jobs as TakenJob[];
  }

  /** Submits a job and lets a worker take it. */
  async running(endpoint: Endpoint, worker: LiveWorker, body?: unknown, more?: Partial<Submit>): Promise<string> {
    const jobId = await this.submit(endpoint, body, more);
    expect((await this.take(worker)).map(({ id }) => id)).toEqual([jobId]);
    return jobId;
  }

  done = (worker: LiveWorker, jobId: string, word: unknown = { output: "done" }): Promise<void> =>
    finishJob(this.parts, worker, jobId, Buffer.isBuffer(word) ? word : Buffer.from(JSON.stringify(word)));

  chunk = (worker: LiveWorker, jobId: string, word: unknown): Promise<void> =>
    appendChunk(this.parts, worker, jobId, Buffer.from(JSON.stringify(word)));

  ping = (worker: LiveWorker, ...jobIds: string[]): Promise<void> => hearPing(this.parts, worker, new Set(jobIds));

  /** The jobs that a worker is told to stop: undefined while its poll is held. */
  stops(worker: LiveWorker) {
    const poll = { jobs: undefined as string[] | undefined };
    void awaitStops(this.parts, worker, this.stays).then((jobs) => {
      poll.jobs = jobs;
    });
    return poll;
  }

  /** An endpoint's jobs, as the admin asks for them. */
  asked = (endpoint: Endpoint) => ({ endpoint, scope: this.admin.scope });

  /** The job's status body, parsed. */
  async status(endpoint: Endpoint, jobId: string): Promise<Record<string, unknown>> {
    const job = await findJob(this.parts, this.now(endpoint), jobId);
    if (job.unreadBytes === 0) return JSON.parse(await describeJob(this.parts, this.asked(endpoint), job));
    const { pieces, release } = await lendStatus(this.parts, this.asked(endpoint), job, new PlainSignal());
    release();
    return JSON.parse(Buffer.concat(pieces.map((piece) => Buffer.from(piece))).toString());
  }

  /** The job's state, or `gone`. */
  async state(endpoint: Endpoint, jobId: string): Promise<string> {
    const job = await this.stores.reader.find({ endpointNo: endpoint.no, jobId, now: this.clock.now() });
    return job?.status ?? "gone";
  }

  health = (endpoint: Endpoint) => this.stores.tallies.tally(endpoint.no);
  warnings = () => this.events.filter((event) => event.type === "server.warning");
}

/** The secret of a worker made by a scene. */
export const secretOf = (worker: LiveWorker): string => `secret-of-${worker.row.id}`;
