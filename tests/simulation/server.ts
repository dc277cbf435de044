import { setMaxListeners } from "node:events";
import { join } from "node:path";
import { onMachine } from "../../packages/server/src/assembly/here.js";
import { connectParts } from "../../packages/server/src/assembly/parts.js";
import { localBell } from "../../packages/server/src/bells/local.js";
import type { ApiKey } from "../../packages/server/src/domain/access/key.js";
import type { HostFacts } from "../../packages/server/src/domain/hosts/host.js";
import type { MillraceEvent } from "../../packages/server/src/events.js";
import { noQuota } from "../../packages/server/src/host/quotas/no-quota.js";
import type { Ids } from "../../packages/server/src/ids.js";
import { limits } from "../../packages/server/src/limits/index.js";
import { expireJobsLoop, timeOutJobsLoop } from "../../packages/server/src/loops/expire-jobs.js";
import { type Loop, runLoop } from "../../packages/server/src/loops/loop.js";
import { scaleLoop } from "../../packages/server/src/loops/scaling/scale.js";
import { deliverWebhooksLoop } from "../../packages/server/src/loops/webhooks/deliver-webhooks.js";
import { tendWorkersLoop } from "../../packages/server/src/loops/workers/tend-workers.js";
import { watchWorkersLoop } from "../../packages/server/src/loops/workers/watch-workers.js";
import { Registry } from "../../packages/server/src/memory/registry.js";
import { clearEndpoint } from "../../packages/server/src/operations/endpoints/save-endpoint.js";
import type { Parts } from "../../packages/server/src/operations/needs.js";
import { settleOrphans, stopWorker } from "../../packages/server/src/operations/workers/worker-life.js";
import type { Provider } from "../../packages/server/src/provider.js";
import type { Sender } from "../../packages/server/src/sender.js";
import type { Stores } from "../../packages/server/src/store/index.js";
import { localVault } from "../../packages/server/src/vaults/local.js";
import type { Random } from "../faults/random.js";
import type { Timeline } from "./clock.js";
import type { Turns } from "./turns.js";
import { type Saw, watchedStores } from "./watched-stores.js";

/** Everything that outlives a server. */
export interface Surroundings {
  readonly stores: Stores;
  readonly turns: Turns;
  readonly ids: Ids;
  readonly provider: Provider;
  readonly facts: () => HostFacts;
  readonly sender: Sender;
  readonly directory: string;
  readonly delays: Random | undefined;
  readonly timeline: Timeline;
  readonly keyHash: string;
  readonly saw: Saw;
  readonly onEvent: (event: MillraceEvent) => void;
  readonly onTick: (loop: string) => void;
  readonly onDeath: () => void;
}

/** The server did not answer, or died before it could. */
export class Broken extends Error {}

export const vault = localVault(Buffer.alloc(32, 7));

/** One run of the server: the real registry, lines, bells and loops, assembled as in `assemble`. */
export class Server {
  readonly #surroundings: Surroundings;
  readonly #ends = new Set<() => void>();
  readonly #draining = new AbortController();
  readonly #deciding = new AbortController();
  readonly #serving = new AbortController();
  readonly #deciders: Promise<void>[] = [];
  #fuse = Number.POSITIVE_INFINITY;
  #thawed: { readonly when: Promise<void>; readonly thaw: () => void } | undefined;
  readonly timeline: Timeline;
  readonly parts: Parts;
  /** Since when it has been listening without a break. */
  listensSince: number;
  isReady = false;
  isOver = false;

  constructor(surroundings: Surroundings, hostNo: number) {
    this.#surroundings = surroundings;
    this.timeline = surroundings.timeline;
    this.listensSince = this.timeline.now();
    setMaxListeners(0, this.#draining.signal, this.#deciding.signal, this.#serving.signal);
    this.parts = this.#assemble(hostNo);
  }

  get admin(): ApiKey {
    return this.parts.registry.key(this.#surroundings.keyHash) as ApiKey;
  }

  #assemble(hostNo: number): Parts {
    const { turns, saw, delays, directory, ids, facts, onEvent } = this.#surroundings;
    const server = this;
    const life = {
      get isOver() {
        return server.isOver;
      },
      count: () => {
        if (--this.#fuse < 0) this.kill();
      },
    };
    const stores = watchedStores(this.#surroundings.stores, { turns, life, saw, delays });
    const clock = this.timeline;
    const bell = localBell();
    const registry = new Registry(stores);
    const here = {
      ...onMachine({ no: hostNo, id: "host" }, facts),
      localProcesses: true,
      places: ["machines"] as const,
      volumes: {
        inClusters: [],
        dir: join(directory, "volumes"),
        quota: noQuota("Nothing is bounded here."),
        use: new Map(),
        bounds: new Map(),
      },
      workingDir: directory,
      stopGraceMs: 30_000,
      freeMemoryShare: () => 1,
      awayMs: 900_000,
      flashBootMs: 300_000,
    };
    const emit = (event: MillraceEvent) => void (this.isOver || onEvent(event));
    const draining = this.#draining.signal;
    const { provider } = this.#surroundings;
    const bootstrapKey = { replace: (_: string, store: () => Promise<void>) => store() };
    return connectParts({ stores, provider, clock, ids, bell, registry, vault, emit, draining, here, bootstrapKey });
  }

  /** Reads the stored state, then starts everything that runs by itself. */
  async start(): Promise<void> {
    const { parts, timeline } = this;
    const { provider, sender, directory } = this.#surroundings;
    await parts.registry.load(timeline.now());
    const tend = tendWorkersLoop(parts, {
      provider,
      workerUrl: async () => "http://127.0.0.1:8000",
      startTimeoutMs: 120_000,
      tends: parts.here.tends,
      homesDir: join(directory, "homes"),
      env: {},
    });
    const run = (loop: Loop, signal: AbortSignal) => runLoop(this.#counted(loop), parts, signal);
    for (const loop of [scaleLoop(parts), deliverWebhooksLoop(parts, sender)])
      this.#deciders.push(run(loop, this.#deciding.signal));
    const serving = [tend, watchWorkersLoop(parts), expireJobsLoop(parts), timeOutJobsLoop(parts)];
    for (const loop of serving) void run(loop, this.#serving.signal);
    await settleOrphans(parts, await parts.reader.orphaned(), true);
    for (const endpoint of parts.registry.endpoints()) {
      if (endpoint.deletedAt !== undefined) void clearEndpoint(parts, endpoint.no);
    }
    this.isReady = true;
  }

  #counted(loop: Loop): Loop {
    return {
      ...loop,
      tick: (now, signal) => {
        this.#surroundings.onTick(loop.name);
        return loop.tick(now, signal);
      },
    };
  }

  /**
   * Stops as with SIGTERM: waiting clients are answered, workers have their grace, and the server exits when they have
   * ended.
   */
  async stop(): Promise<void> {
    const { parts, timeline } = this;
    const { stopGraceMs } = parts.here;
    this.#draining.abort();
    this.#deciding.abort();
    await Promise.all(this.#deciders);
    for (const worker of parts.registry.liveWorkers()) await stopWorker(parts, worker, "the server stops", stopGraceMs);
    const deadline = timeline.now() + stopGraceMs + limits.netMs;
    while (parts.registry.liveWorkers().length > 0 && timeline.now() < deadline) await timeline.sleep(limits.loopGapMs);
    this.kill();
  }

  /** The machine's resources have changed: the stock-taking loop reports it. */
  noteStock(): void {
    if (this.isOver) return;
    this.parts.bell.ring("demand");
    this.parts.bell.ring("workers");
  }

  /** Whether it is stopping: then waiting clients are answered early. */
  get isDraining(): boolean {
    return this.#draining.signal.aborted;
  }

  /** Runs a request: it waits while the server is stopped, and fails if the server dies. */
  async ask<T>(operation: (server: Server) => Promise<T>): Promise<T> {
    while (this.#thawed && !this.isOver) await this.#orDeath(this.#thawed.when);
    if (this.isOver || !this.isReady) throw new Broken();
    return this.#orDeath(operation(this));
  }

  #orDeath<T>(call: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const end = () => reject(new Broken());
      if (this.isOver) return end();
      this.#ends.add(end);
      call.then(resolve, reject).finally(() => this.#ends.delete(end));
    });
  }

  /** Makes the server die after this many calls of the store have begun or ended. */
  dieAfter(calls: number): void {
    this.#fuse = Math.min(this.#fuse, calls);
  }

  /** As with `kill -9`: none of its work continues. */
  kill(): void {
    if (this.isOver) return;
    this.isOver = true;
    this.timeline.stop();
    this.#thawed?.thaw();
    for (const end of [...this.#ends]) end();
    this.#surroundings.onDeath();
  }

  /** Cancels a death that was planned. */
  liveOn(): void {
    this.#fuse = Number.POSITIVE_INFINITY;
  }

  get isHeld(): boolean {
    return this.#thawed !== undefined;
  }

  /** As with SIGSTOP. */
  freeze(): void {
    let thaw = () => {};
    const when = new Promise<void>((resolve) => {
      thaw = resolve;
    });
    this.#thawed = { when, thaw };
    this.timeline.isHeld = true;
  }

  /** As with SIGCONT: the clock reports the gap before any call is served, like the real clock. */
  thaw(gapMs: number, isTold: boolean): void {
    this.timeline.isHeld = false;
    this.listensSince = this.timeline.now();
    if (isTold) this.timeline.tellGap(gapMs);
    this.#thawed?.thaw();
    this.#thawed = undefined;
  }
}
