import { setMaxListeners } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "vitest";
import { onMachine } from "../assembly/here.js";
import { connectParts } from "../assembly/parts.js";
import { localBell } from "../bells/local.js";
import type { ApiKey } from "../domain/access/key.js";
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
import { scaleLoop } from "../loops/scaling/scale.js";
import { deliverWebhooksLoop } from "../loops/webhooks/deliver-webhooks.js";
import { type TendOptions, tendWorkersLoop } from "../loops/workers/tend-workers.js";
import { watchWorkersLoop } from "../loops/workers/watch-workers.js";
import { Registry } from "../memory/registry.js";
import type { Here, Parts } from "../operations/needs.js";
import type { Stores } from "../store/index.js";
import { localVault } from "../vaults/local.js";
import { openInMemory } from "./database-fixture.js";
import { plainHost } from "./facts-fixture.js";
import { MovableClock } from "./movable-clock-fixture.js";
import { RecordingSender } from "./recording-sender-fixture.js";
import { SceneActs } from "./scene-acts-fixture.js";
import { seededIds } from "./seeded-ids-fixture.js";
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

/**
 * The real operations, registry, lines and loops over SQLite in memory; the test controls time, workers and the outside
 * world. Nothing runs by itself until `run` or `runAll` is called.
 */
export class Scene extends SceneActs {
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

  private constructor(world: World, options: SceneOptions, hostNo: number) {
    super();
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
      emit: (event) => {
        this.events.push(event);
        this.parts.news.hear(event);
      },
      draining: this.draining.signal,
      bootstrapKey: { replace: (_, store) => store() },
      here: {
        ...onMachine({ no: hostNo, id: "host" }, options.here?.facts ?? (() => plainHost)),
        localProcesses: true,
        places: ["machines", "cluster"],
        volumes: {
          inClusters: [],
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
      stores: openInMemory(onFatal),
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
      tends: (hostNo) => this.parts.here.tends(hostNo),
      homesDir: join(this.directory, "homes"),
      env: { PATH: "/bin", SECRET_OF_THE_SERVER: "never" },
    };
  }

  /** Makes an endpoint that the scaler watches. */
  async scaled(more: Parameters<Scene["endpoint"]>[0] = {}): Promise<Endpoint> {
    const endpoint = await this.endpoint(more);
    this.run(this.loops.scale());
    await this.advance(50);
    return endpoint;
  }

  /** Runs all loops. */
  async runAll(): Promise<void> {
    const { scale, watch, expire, timeOut, deliver, tend } = this.loops;
    this.run(scale(), watch(), expire(), timeOut(), deliver(), tend());
    await this.settle();
  }
}

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
