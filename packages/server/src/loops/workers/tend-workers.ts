import { isSettledWithin } from "../../clock.js";
import { earliest } from "../../domain/earliest.js";
import { isLastStart } from "../../domain/jobs/job.js";
import { isPod } from "../../domain/pods/pod.js";
import { failedToStart, isThrottled } from "../../domain/workers/worker.js";
import { endOf } from "../../domain/workers/worker-end.js";
import { limits } from "../../limits/index.js";
import type { LiveWorker } from "../../memory/registry.js";
import { hideHeldSecrets } from "../../operations/access/access-secret.js";
import type { Needs } from "../../operations/needs.js";
import { endWorker, giveUpOn, noteReady, stopWorker } from "../../operations/workers/worker-life.js";
import { left } from "../../provider.js";
import type { Loop } from "../loop.js";
import { easeMemory, freeze, noteLostGpus, thaw } from "./freeze-worker.js";
import { whereIs } from "./launch.js";
import { leavesCluster } from "./leave-cluster.js";
import { type StartOptions, WorkerStarts } from "./start-worker.js";
import { strayWorkers } from "./stray-workers.js";
import { Tended } from "./tended.js";
import { handlerWatch } from "./watch-handlers.js";

export interface TendOptions extends StartOptions {
  readonly startTimeoutMs: number;
  /** The hosts whose workers are tended. */
  readonly tends: (hostNo: number) => boolean;
}

type Tending = Needs<
  "jobs" | "reader" | "clock" | "ids" | "bell" | "registry" | "emit" | "vault" | "here" | "hideInLog" | "secrets"
>;

/** Tends the workers of this machine, and looks at its handlers and its memory. */
export function tendWorkersLoop(needs: Tending, options: TendOptions): Loop {
  const watchHandlers = handlerWatch(needs);
  return tendingLoop("tend-workers", needs, options, async (mine, now) =>
    earliest(await easeMemory(needs, mine, now), await watchHandlers(now)),
  );
}

/** Tends the workers of a cluster: one of the servers does, and begins without knowing any. */
export function tendClusterLoop(name: string, needs: Tending, options: TendOptions): Loop {
  const tended = new Tended(options.provider);
  const loop = tendingLoop(name, needs, options, leavesCluster(needs), tended);
  return {
    ...loop,
    listen(wake) {
      const off = loop.listen?.(wake);
      return () => {
        off?.();
        // whoever tends the cluster next goes on with what has begun
        for (const start of tended.starting.values()) start.abort(left);
      };
    },
  };
}

/** Makes the provider agree with its hosts' rows, and records what it observes. `also` says when it is due again. */
function tendingLoop(
  name: string,
  needs: Tending,
  options: TendOptions,
  also: (mine: readonly LiveWorker[], now: number) => Promise<number | undefined>,
  tended = new Tended(options.provider),
): Loop {
  const { provider, tends } = options;
  const { registry, bell, clock } = needs;
  const tender = new Tender(needs, options, tended);
  const strays = strayWorkers({ ...needs, tends }, provider, tended);
  return {
    name,
    listen: () =>
      provider.onEnd((workerId) => {
        tended.gone.add(workerId);
        bell.ring("workers");
      }),
    topics: ["workers"],
    gapMs: limits.loopGapMsMin,
    async tick(now) {
      const mine = registry.liveWorkers().filter(({ row }) => tends(row.hostNo));
      const looks: (number | undefined)[] = [];
      const tending = mine.map(async (worker) => looks.push(await tender.look(worker, now)));
      const givenUp = registry.isShared ? strays.endGivenUp().then((again) => looks.push(again)) : undefined;
      const all = Promise.all([...tending, givenUp, strays.endUnwanted()]);
      // a hanging engine must hold up only its own workers: late results are looked at when they come
      if (!(await isSettledWithin(clock, limits.tendTurnMs, all))) void all.then(() => bell.ring("workers"));
      return earliest(...looks, await also(mine, now));
    },
  };
}

/** Brings one worker after the other to what is wanted of it. Each step may be repeated by the next server. */
class Tender {
  readonly #needs: Tending;
  readonly #options: TendOptions;
  readonly #tended: Tended;
  readonly #starts: WorkerStarts;
  /** When this server last came back from a gap: what workers could not do during it must not count against them. */
  #resumedAt = 0;

  constructor(needs: Tending, options: TendOptions, tended: Tended) {
    this.#needs = needs;
    this.#options = options;
    this.#tended = tended;
    this.#starts = new WorkerStarts(needs, options, tended);
    needs.clock.onGap(() => {
      this.#resumedAt = needs.clock.now();
    });
  }

  /**
   * Tends a worker unless that is under way already; then it is tended again afterwards. Returns when to look next.
   */
  async look(worker: LiveWorker, now: number): Promise<number | undefined> {
    const { busy, again } = this.#tended;
    const { id } = worker.row;
    if (busy.has(id)) {
      again.add(id);
      return undefined;
    }
    busy.add(id);
    try {
      return await this.#tend(worker, now);
    } catch (error) {
      this.#needs.emit({ type: "server.warning", message: `worker ${id} could not be tended`, error });
      const { killAt, endedAt } = worker.row;
      if (killAt !== undefined && now >= killAt && endedAt === undefined)
        await giveUpOn(this.#needs, worker).catch(() => {});
      return now + limits.netMs;
    } finally {
      busy.delete(id);
      if (again.delete(id)) this.#needs.bell.ring("workers");
    }
  }

  async #tend(worker: LiveWorker, now: number): Promise<number | undefined> {
    const { starting, known, unstored, gone } = this.#tended;
    const { row } = worker;
    if (starting.has(row.id)) {
      if (row.wanted === "stopped") starting.get(row.id)?.abort();
      return undefined;
    }
    // a started worker whose start could not be stored is not started again: its secret would be a different one
    const mayRun = !known.has(row.id) || row.startedAt === undefined;
    const retryAt = unstored.get(row.id);
    if (mayRun && row.secretHash !== undefined && retryAt === undefined) return this.#adopt(worker);
    if (isThrottled(row)) return row.wanted === "stopped" ? this.#neverStarted(worker) : undefined;
    if (row.startedAt === undefined) {
      if (row.wanted === "stopped") return this.#neverStarted(worker);
      return retryAt !== undefined && now < retryAt ? retryAt : void this.#starts.begin(worker);
    }
    return gone.has(row.id) ? this.#ended(worker) : this.#tendStarted(worker, row.startedAt, now);
  }

  async #tendStarted(worker: LiveWorker, startedAt: number, now: number): Promise<number | undefined> {
    const { row } = worker;
    const { startTimeoutMs } = this.#options;
    // a pod's container is in use from the moment it runs
    if (row.readyAt === undefined && row.wanted === "running" && this.#isPod(worker))
      await noteReady(this.#needs, worker);
    const isWaited = row.readyAt === undefined && row.killAt === undefined && !this.#isPod(worker);
    const lateAt = isWaited ? Math.max(startedAt, this.#resumedAt) + startTimeoutMs : undefined;
    if (lateAt !== undefined && now >= lateAt) {
      const missed = row.address === undefined ? "ask for a job" : "answer GET /ping with 200";
      const note = `it did not ${missed} within ${startTimeoutMs / 1_000} s`;
      await this.#needs.registry.changeWorker(worker, { by: "kill", killAt: now, exit: { note } });
      return now;
    }
    if (row.killAt !== undefined && now >= row.killAt) await this.#kill(worker);
    else if (row.wanted === "stopped") await this.#askToStop(worker);
    else {
      const againAt = await this.#freezeOrThaw(worker, now);
      await noteLostGpus(this.#needs, worker);
      if (againAt !== undefined) return earliest(againAt, lateAt);
    }
    return earliest(lateAt, this.#tended.killed.has(row.id) ? now + limits.netMs : row.killAt);
  }

  #isPod({ row }: LiveWorker): boolean {
    return isPod(this.#needs.registry.endpointByNo(row.endpointNo));
  }

  /**
   * Freezes or thaws a worker once per request; this may repeat what an earlier server has done. Returns when to retry.
   */
  async #freezeOrThaw(worker: LiveWorker, now: number): Promise<number | undefined> {
    const { id, wanted, pausedAt, resumedAt } = worker.row;
    const askedAt = wanted === "paused" ? pausedAt : resumedAt;
    if (askedAt === undefined || this.#tended.frozenOrThawed.get(id) === askedAt) return undefined;
    try {
      await (wanted === "paused" ? freeze : thaw)(this.#needs, this.#options.provider, worker);
      this.#tended.frozenOrThawed.set(id, askedAt);
      return undefined;
    } catch (error) {
      this.#needs.emit({
        type: "server.warning",
        message: `worker ${id} could not be frozen or woken just now`,
        error,
      });
      return now + limits.engineRetryMs; // a worker that is to wake has only a few seconds for it
    }
  }

  /** Finds out about a worker of an earlier server: still alive, ended meanwhile, or never started. */
  async #adopt(worker: LiveWorker): Promise<number | undefined> {
    const { registry, clock, here } = this.#needs;
    const { known } = this.#tended;
    const { row } = worker;
    const seen = await this.#options.provider.look(row.id, row.handle);
    if (seen.state !== "unknown") await hideHeldSecrets(this.#needs, worker);
    if (seen.state === "running") {
      const hasOwnNetwork = seen.handle.network !== undefined;
      const workerUrl = row.workerUrl === undefined ? undefined : await this.#options.workerUrl(hasOwnNetwork);
      known.add(row.id);
      const startedAt = row.startedAt ?? clock.now();
      await registry.changeWorker(worker, { by: "start", ...whereIs(row, seen.handle), startedAt });
      if (row.workerUrl !== workerUrl)
        await stopWorker(this.#needs, worker, "it was given another address of this server", here.stopGraceMs);
      return clock.now();
    }
    const wasKnown = known.has(row.id);
    known.add(row.id);
    if (seen.state === "ended") return this.#ended(worker);
    // a worker that may be running unseen must not be started a second time
    const mayBegin = seen.isAbsent && row.startedAt === undefined && row.wanted !== "stopped";
    return mayBegin ? void this.#starts.begin(worker) : this.#lost(worker, seen.why, { isBlameless: !wasKnown });
  }

  async #neverStarted(worker: LiveWorker): Promise<undefined> {
    await endWorker(this.#needs, worker, {}, "it was not started");
    this.#tended.unstored.delete(worker.row.id);
  }

  async #ended(worker: LiveWorker): Promise<number | undefined> {
    const { reader, clock } = this.#needs;
    const { provider } = this.#options;
    const { row } = worker;
    const seen = await provider.look(row.id, row.handle);
    if (seen.state === "running") {
      this.#tended.gone.delete(row.id); // it was only to be looked up
      return clock.now();
    }
    if (seen.state === "unknown") return this.#lost(worker, seen.why);
    const held = await reader.heldBy(row.no);
    const isTold = failedToStart(row, held.length, clock.now()) || this.#isPod(worker);
    const tail = isTold ? await provider.logTail(row.id) : "";
    const { how, exit } = endOf(row, seen.exit, tail);
    // a job must not wait for a log that cannot be read
    const lastLines = held.some(isLastStart) ? await provider.logTail(row.id).catch(() => "") : "";
    await endWorker(this.#needs, worker, exit, how, { lastLines });
    await this.#tended.forget(worker);
    return undefined;
  }

  /** Its provider does not know it any more: kills what may be left of it. */
  async #lost(worker: LiveWorker, why: string, { isBlameless = true } = {}): Promise<undefined> {
    await this.#options.provider.kill(worker.row.id, worker.row.handle);
    await endWorker(this.#needs, worker, {}, why, { isBlameless });
    await this.#tended.forget(worker);
  }

  async #askToStop(worker: LiveWorker): Promise<void> {
    const { registry, clock } = this.#needs;
    const { asked } = this.#tended;
    const { id } = worker.row;
    if (asked.has(id)) return;
    await this.#options.provider.stop(id);
    asked.add(id);
    if (registry.isShared) await registry.changeWorker(worker, { by: "askToStop", askedAt: clock.now() });
    // not earlier: a worker that has not got the signal yet would poll again at once
    worker.dismissed.abort();
  }

  async #kill(worker: LiveWorker): Promise<void> {
    const { killed } = this.#tended;
    const { id, handle } = worker.row;
    const killing = this.#options.provider.kill(id, handle);
    // its jobs must not wait for an engine that hangs or does not report the end
    const isPrompt = await isSettledWithin(this.#needs.clock, limits.killPatienceMs, killing);
    if (!isPrompt || killed.has(id)) await giveUpOn(this.#needs, worker);
    await killing;
    killed.add(id); // repeated every few seconds until it is seen to have ended
  }
}
