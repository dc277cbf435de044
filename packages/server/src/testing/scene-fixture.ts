import { setMaxListeners } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "vitest";
import { onMachine } from "../assembly/here.js";
import { connectParts } from "../assembly/parts.js";
import { localBell } from "../bells/local.js";
import { PlainSignal } from "../clock.js";
import type { ApiKey, Scope } from "../domain/access/key.js";
import type { Endpoint } from "../domain/endpoints/endpoint.js";
import type { RefusalCode } from "../domain/refusals.js";
import { Refusal } from "../errors.js";
import type { MillraceEvent } from "../events.js";
import { noQuota } from "../host/quotas/no-quota.js";
import type { Ids } from "../ids.js";
import { limits } from "../limits/index.js";
import type { TakeLine } from "../lines/take-line.js";
import { expireJobsLoop, timeOutJobsLoop } from "../loops/expire-jobs.js";
import { type Loop, runLoop } from "../loops/loop.js";
import { scaleLoop } from "../loops/scale.js";
import { deliverWebhooksLoop } from "../loops/webhooks/deliver-webhooks.js";
import { type TendOptions, tendWorkersLoop } from "../loops/workers/tend-workers.js";
import { watchWorkersLoop } from "../loops/workers/watch-workers.js";
import { type LiveWorker, Registry } from "../memory/registry.js";
import { createEndpoint } from "../operations/endpoints/save-endpoint.js";
import { appendChunk, finishJob } from "../operations/jobs/finish-job.js";
import { lendStatus } from "../operations/jobs/lend-status.js";
import { describeJob, findJob } from "../operations/jobs/read-job.js";
import { type Submit, submitJob } from "../operations/jobs/submit-job.js";
import { takeJobs, tookOver } from "../operations/jobs/take-jobs.js";
import type { Here, Parts } from "../operations/needs.js";
import { createTemplate } from "../operations/templates/save-template.js";
import { awaitStops, hearPing } from "../operations/workers/hear-ping.js";
import type { Stores, TakenJob } from "../store/index.js";
import { openSqlite } from "../stores/sqlite/open.js";
import { localVault } from "../vaults/local.js";
import { plainHost, plainKey, plainUser } from "./facts-fixture.js";
import { MovableClock } from "./movable-clock-fixture.js";
import { RecordingSender } from "./recording-sender-fixture.js";
import { StrictProvider } from "./strict-provider-fixture.js";

export interface SceneOptions {
  readonly here?: Partial<Here>;
  readonly volumes?: Partial<Here["volumes"]>;
  readonly workerUrl?: string;
}

/** What survives a restart of the server: the database, the host with its processes, and time. */
interface World {
  readonly stores: Stores;
  readonly clock: MovableClock;
  readonly ids: Ids;
  readonly provider: StrictProvider;
  readonly directory: string;
}

/** Ids in the real format, but the same in every run. */
export function seededIds(): Ids {
  let state = 42;
  const next = (): number => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return (t ^ (t >>> 14)) >>> 0;
  };
  const hex = (digits: number) => Array.from({ length: digits }, () => (next() % 16).toString(16)).join("");
  return {
    resource: () => Array.from({ length: 14 }, () => "abcdefghijklmnopqrstuvwxyz0123456789"[next() % 36]).join(""),
    uuid: (now) => {
      const time = now.toString(16).padStart(12, "0");
      return `${time.slice(0, 8)}-${time.slice(8)}-7${hex(3)}-8${hex(3)}-${hex(12)}`;
    },
    secret: (bytes) => Buffer.from(hex(bytes * 2), "hex").toString("base64url"),
  };
}

/**
 * The real operations, registry, lines and loops over SQLite in memory; the test controls time, workers and the outside
 * world. Nothing runs by itself until `run` or `runAll` is called.
 */
export class Scene {
  readonly #world: World;
  readonly #options: SceneOptions;
  readonly #stopping = new AbortController();
  readonly #running: Promise<void>[] = [];
  readonly #gone = new AbortController();
  #inFlight = 0;
  #hooks = new Map<string, () => void>();
  readonly draining = new AbortController();
  readonly events: MillraceEvent[] = [];
  readonly sender = new RecordingSender();
  readonly stores: Stores;
  readonly parts: Parts;
  /** The lines of workers that wait for jobs, by endpoint. */
  readonly lines = new Map<number, TakeLine>();
  /** The admin's key with every right, as text and as the registry knows it. */
  key = "";
  admin!: ApiKey;

  private constructor(world: World, options: SceneOptions, hostNo: number) {
    this.#world = world;
    setMaxListeners(0, this.#gone.signal, this.#stopping.signal, this.draining.signal);
    this.#options = options;
    this.stores = this.#watched(world.stores);
    const bell = localBell();
    const registry = new Registry(this.stores);
    this.parts = connectParts({
      stores: this.stores,
      provider: world.provider,
      lines: this.lines,
      clock: world.clock,
      ids: world.ids,
      bell,
      registry,
      vault: localVault(Buffer.alloc(32, 7)),
      emit: (event) => void this.events.push(event),
      draining: this.draining.signal,
      bootstrapKey: { replace: (_, store) => store() },
      here: {
        ...onMachine({ no: hostNo, id: "host" }, options.here?.facts ?? (() => plainHost)),
        localProcesses: true,
        volumes: {
          dir: join(world.directory, "volumes"),
          quota: noQuota("Nothing is bounded here."),
          use: new Map(),
          bounds: new Map(),
          ...options.volumes,
        },
        workingDir: world.directory,
        stopGraceMs: 30_000,
        freeMemoryShare: () => 1,
        awayMs: limits.awayMsDefault,
        flashBootMs: 3_600_000,
        ...options.here,
      },
    });
  }

  static async open(options: SceneOptions = {}): Promise<Scene> {
    const onFatal = (error: Error) => {
      throw error;
    };
    const world: World = {
      stores: openSqlite({ path: ":memory:", onFatal }),
      clock: new MovableClock(),
      ids: seededIds(),
      provider: new StrictProvider(),
      directory: mkdtempSync(join(tmpdir(), "millrace-scene-")),
    };
    const scene = await Scene.#start(world, options);
    scene.key = "mr_admin-key-of-this-scene";
    const owner = await scene.user({ isAdmin: true });
    scene.admin = await scene.addKey(scene.key, owner);
    return scene;
  }

  static async #start(world: World, options: SceneOptions): Promise<Scene> {
    const hostNo = await world.stores.hosts.ensure("host", world.clock.now());
    const scene = new Scene(world, options, hostNo);
    await scene.parts.registry.load(world.clock.now());
    return scene;
  }

  /** Kills this server as `kill -9` would, and starts another one on the same database and the same processes. */
  async restart(options: SceneOptions = this.#options): Promise<Scene> {
    await this.#halt();
    this.#world.provider.disconnect();
    const next = await Scene.#start(this.#world, options);
    next.key = this.key;
    next.admin = next.parts.registry.key(next.parts.vault.hash(this.key)) as ApiKey;
    return next;
  }

  /** Ends the scene; fails if a caller broke the provider's contract, or if something is still sleeping. */
  async close(): Promise<void> {
    await this.#halt();
    await this.#world.stores.close();
    rmSync(this.#world.directory, { recursive: true, force: true });
    expect(this.provider.violations).toEqual([]);
    expect(this.clock.sleeping, "sleeps that never ended").toBe(0);
  }

  async #halt(): Promise<void> {
    this.#stopping.abort();
    this.#gone.abort();
    await this.settle();
    await Promise.all(this.#running);
    await this.settle();
  }

  get clock(): MovableClock {
    return this.#world.clock;
  }
  get provider(): StrictProvider {
    return this.#world.provider;
  }
  get directory(): string {
    return this.#world.directory;
  }
  /** The signal of a client that stays connected until the scene ends. */
  get stays(): AbortSignal {
    return this.#gone.signal;
  }

  // time

  /** Runs everything that needs no time; ends when no store call is in flight. */
  settle = async (): Promise<void> => {
    for (let quiet = 0; quiet < 4; quiet++) {
      await new Promise((resolve) => setImmediate(resolve));
      if (this.#inFlight > 0) quiet = 0;
    }
  };

  advance = (ms: number): Promise<void> => this.clock.advance(ms, this.settle);

  /** Waits, without moving the clock, for something that arrives over a socket or from a thread. */
  async until(isSo: () => boolean | Promise<boolean>): Promise<void> {
    const deadline = performance.now() + 60_000; // on a busy machine this may take long
    while (!(await isSo())) {
      if (performance.now() > deadline) throw new Error(`it never became true: ${isSo}`);
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  /** Runs `act` once, as soon as the next call of a store's verb is in flight, such as `jobs.take`. */
  during(verb: string, act: () => void): void {
    this.#hooks.set(verb, act);
  }

  /** The same stores, with their calls counted. */
  #watched(stores: Stores): Stores {
    const around = (of: object, name: string): object =>
      new Proxy(of, {
        get: (target, verb: string) => {
          const method = Reflect.get(target, verb);
          if (typeof method !== "function") return method;
          return (...args: unknown[]) => {
            this.#inFlight++;
            const hook = this.#hooks.get(`${name}.${verb}`);
            this.#hooks.delete(`${name}.${verb}`);
            const result = Promise.resolve(method.apply(target, args)).finally(() => void this.#inFlight--);
            hook?.();
            return result;
          };
        },
      });
    const names = Object.keys(stores) as (keyof Stores)[];
    const wrapped = names.map((name) => {
      const part = stores[name];
      return [name, typeof part === "function" || part === undefined ? part : around(part, name)];
    });
    return Object.fromEntries(wrapped) as unknown as Stores;
  }

  // loops

  run(...loops: Loop[]): void {
    for (const loop of loops) this.#running.push(runLoop(loop, this.parts, this.#stopping.signal));
  }

  get loops() {
    const { parts } = this;
    return {
      scale: () => scaleLoop(parts),
      watch: () => watchWorkersLoop(parts),
      expire: () => expireJobsLoop(parts),
      timeOut: () => timeOutJobsLoop(parts),
      deliver: () => deliverWebhooksLoop(parts, this.sender),
      tend: () => tendWorkersLoop(parts, this.tending),
    };
  }

  /** How its workers are started. */
  get tending(): TendOptions {
    return {
      provider: this.provider,
      workerUrl: async () => this.#options.workerUrl ?? "http://127.0.0.1:8000",
      startTimeoutMs: 900_000,
      homesDir: join(this.directory, "homes"),
      env: { PATH: "/bin", SECRET_OF_THE_SERVER: "never" },
    };
  }

  /** Runs all loops. */
  async runAll(): Promise<void> {
    const { scale, watch, expire, timeOut, deliver, tend } = this.loops;
    this.run(scale(), watch(), expire(), timeOut(), deliver(), tend());
    await this.settle();
  }

  // users and their keys

  async user({ isAdmin }: { isAdmin: boolean }): Promise<number> {
    const id = `user_${this.parts.ids.resource()}`;
    const webhookSecret = this.parts.vault.seal(`whsec_${Buffer.alloc(24, 5).toString("base64")}`);
    return (await this.parts.registry.createUser({ ...plainUser, id, name: id, isAdmin, webhookSecret })).no;
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

  /** A worker's poll: how to read its answer, and how to disconnect it. */
  poll(worker: LiveWorker, { count = 1, holdsNothing = false, isBusy = false } = {}) {
    const client = new AbortController();
    const leave = () => client.abort();
    this.#gone.signal.addEventListener("abort", leave, { once: true });
    const poll = { jobs: undefined as TakenJob[] | undefined, leave, answer: Promise.resolve() };
    poll.answer = takeJobs(this.parts, { worker, count, holdsNothing, isBusy, gone: client.signal }).then((jobs) => {
      poll.jobs = jobs;
      tookOver(worker, jobs);
    });
    return poll;
  }

  /** A poll that disconnects if it finds no job at once. */
  async take(worker: LiveWorker, options: Parameters<Scene["poll"]>[1] = {}): Promise<TakenJob[]> {
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
    void awaitStops(this.parts, worker, this.#gone.signal).then((jobs) => {
      poll.jobs = jobs;
    });
    return poll;
  }

  /** The job's status body, parsed. */
  async status(endpoint: Endpoint, jobId: string): Promise<Record<string, unknown>> {
    const job = await findJob(this.parts, this.now(endpoint), jobId);
    if (job.unreadBytes === 0) return JSON.parse(await describeJob(this.parts, endpoint, job));
    const { pieces, release } = await lendStatus(this.parts, endpoint, job, new PlainSignal());
    release();
    return JSON.parse(Buffer.concat(pieces.map((piece) => Buffer.from(piece))).toString());
  }

  /** The job's state, or `gone`. */
  async state(endpoint: Endpoint, jobId: string): Promise<string> {
    const job = await this.stores.reader.find(endpoint.no, jobId, this.clock.now());
    return job?.status ?? "gone";
  }

  health = (endpoint: Endpoint) => this.stores.tallies.tally(endpoint.no);
  warnings = () => this.events.filter((event) => event.type === "server.warning");
}

/** The secret of a worker made by a scene. */
export const secretOf = (worker: LiveWorker): string => `secret-of-${worker.row.id}`;

/** Expects a call to be refused with this code, and a message that matches these words. */
export async function refused(call: Promise<unknown> | (() => unknown), code: RefusalCode, words: RegExp = /./) {
  let refusal: unknown;
  try {
    await (typeof call === "function" ? call() : call);
  } catch (error) {
    refusal = error;
  }
  if (!(refusal instanceof Refusal)) throw new Error(`expected ${code}, and got ${refusal ?? "no refusal"}`);
  expect({ code: refusal.code, sentence: refusal.message }).toEqual({ code, sentence: expect.stringMatching(words) });
}
