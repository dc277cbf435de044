import { isSettledWithin } from "../../clock.js";
import { earliest } from "../../domain/earliest.js";
import { isLastStart } from "../../domain/jobs/job.js";
import { failedToStart, isThrottled } from "../../domain/workers/worker.js";
import { endOf } from "../../domain/workers/worker-end.js";
import { limits } from "../../limits/index.js";
import type { LiveWorker } from "../../memory/registry.js";
import { hideHeldSecrets } from "../../operations/access/access-secret.js";
import type { Needs } from "../../operations/needs.js";
import { endWorker, giveUpOn, stopWorker } from "../../operations/workers/worker-life.js";
import { type Provider, StartFailed, type StartPhase, StartUnsure } from "../../provider.js";
import type { Loop } from "../loop.js";
import { easeMemory, freeze, noteLostGpus, thaw } from "./freeze-worker.js";
import { type LaunchOptions, launchOf, whereIs } from "./launch.js";
import { strayWorkers } from "./stray-workers.js";
import { handlerWatch } from "./watch-handlers.js";

export interface TendOptions extends LaunchOptions {
  readonly provider: Provider;
  readonly startTimeoutMs: number;
}

type Tending = Needs<
  "jobs" | "reader" | "clock" | "ids" | "bell" | "registry" | "emit" | "vault" | "here" | "hideInLog" | "secrets"
>;

/** Makes the provider agree with this host's rows, and records what it observes. */
export function tendWorkersLoop(needs: Tending, options: TendOptions): Loop {
  const { provider } = options;
  const watchHandlers = handlerWatch(needs);
  /** Workers that this process has started or seen running; for any other, it first asks what became of it. */
  const known = new Set<string>();
  /** Workers being started, with what aborts the start when they are no longer wanted. */
  const starting = new Map<string, AbortController>();
  /**
   * Workers whose secret could not be stored, with the time to try again. The provider has not been asked for them yet.
   */
  const unstored = new Map<string, number>();
  const asked = new Set<string>();
  const killed = new Set<string>();
  const gone = new Set<string>();
  const busy = new Set<string>();
  /** Workers that were due to be looked at while they were busy. */
  const again = new Set<string>();
  /** By worker, the time of the last freeze or thaw that was carried out. */
  const frozenOrThawed = new Map<string, number>();

  /** When this server last came back from a gap: what workers could not do during it must not count against them. */
  let resumedAt = 0;
  needs.clock.onGap(() => {
    resumedAt = needs.clock.now();
  });

  provider.onEnd((workerId) => {
    gone.add(workerId);
    needs.bell.ring("workers");
  });

  const strays = strayWorkers(needs, { provider, starting, busy, gone, forget });

  async function tend(worker: LiveWorker, now: number): Promise<number | undefined> {
    const { row } = worker;
    if (starting.has(row.id)) {
      if (row.wanted === "stopped") starting.get(row.id)?.abort();
      return undefined;
    }
    // a started worker whose start could not be stored is not started again: its secret would be a different one
    const mayRun = !known.has(row.id) || row.startedAt === undefined;
    const retryAt = unstored.get(row.id);
    if (mayRun && row.secretHash !== undefined && retryAt === undefined) return adopt(worker);
    if (isThrottled(row)) return row.wanted === "stopped" ? neverStarted(worker) : undefined;
    if (row.startedAt === undefined) {
      if (row.wanted === "stopped") return neverStarted(worker);
      return retryAt !== undefined && now < retryAt ? retryAt : begin(worker);
    }
    if (gone.has(row.id)) return ended(worker);
    const isWaited = row.readyAt === undefined && row.killAt === undefined;
    const lateAt = isWaited ? Math.max(row.startedAt, resumedAt) + options.startTimeoutMs : undefined;
    if (lateAt !== undefined && now >= lateAt) {
      const missed = row.address === undefined ? "ask for a job" : "answer GET /ping with 200";
      const note = `it did not ${missed} within ${options.startTimeoutMs / 1_000} s`;
      await needs.registry.changeWorker(worker, {
        by: "kill",
        killAt: now,
        exit: { note },
      });
      return now;
    }
    if (row.killAt !== undefined && now >= row.killAt) await kill(worker);
    else if (row.wanted === "stopped") await askToStop(worker);
    else {
      const againAt = await freezeOrThaw(worker, now);
      await noteLostGpus(needs, worker);
      if (againAt !== undefined) return earliest(againAt, lateAt);
    }
    return earliest(lateAt, killed.has(row.id) ? now + limits.netMs : row.killAt);
  }

  /**
   * Freezes or thaws a worker once per request; this may repeat what an earlier server has done. Returns when to retry.
   */
  async function freezeOrThaw(worker: LiveWorker, now: number): Promise<number | undefined> {
    const { id, wanted, pausedAt, resumedAt } = worker.row;
    const askedAt = wanted === "paused" ? pausedAt : resumedAt;
    if (askedAt === undefined || frozenOrThawed.get(id) === askedAt) return undefined;
    try {
      await (wanted === "paused" ? freeze : thaw)(needs, provider, worker);
      frozenOrThawed.set(id, askedAt);
      return undefined;
    } catch (error) {
      needs.emit({ type: "server.warning", message: `worker ${id} could not be frozen or woken just now`, error });
      return now + limits.engineRetryMs; // a worker that is to wake has only a few seconds for it
    }
  }

  /** Finds out about a worker of an earlier server: still alive, ended meanwhile, or never started. */
  async function adopt(worker: LiveWorker): Promise<number | undefined> {
    const { row } = worker;
    const seen = await provider.look(row.id, row.handle);
    if (seen.state !== "unknown") await hideHeldSecrets(needs, worker);
    if (seen.state === "running") {
      const workerUrl = await options.workerUrl(seen.handle.network !== undefined);
      known.add(row.id);
      const startedAt = row.startedAt ?? needs.clock.now();
      await needs.registry.changeWorker(worker, { by: "start", ...whereIs(row, seen.handle), startedAt });
      if (row.workerUrl !== workerUrl) {
        await stopWorker(needs, worker, "it was given another address of this server", needs.here.stopGraceMs);
      }
      return needs.clock.now();
    }
    const wasKnown = known.has(row.id);
    known.add(row.id);
    if (seen.state === "ended") return ended(worker);
    // a worker that may be running unseen must not be started a second time
    const mayBegin = seen.isAbsent && row.startedAt === undefined && row.wanted !== "stopped";
    return mayBegin ? begin(worker) : lost(worker, seen.why, { isBlameless: !wasKnown });
  }

  /**
   * Starts a worker without waiting for it: its image may take minutes to pull, and other workers need care meanwhile.
   */
  function begin(worker: LiveWorker): undefined {
    const { row } = worker;
    known.add(row.id);
    const wanted = new AbortController();
    starting.set(row.id, wanted);
    void start(worker, wanted.signal)
      .catch((error) =>
        needs.emit({ type: "server.warning", message: `worker ${row.id} could not be started just now`, error }),
      )
      .finally(() => {
        starting.delete(row.id);
        worker.doing = undefined;
        needs.bell.ring("workers");
      });
  }

  async function start(worker: LiveWorker, signal: AbortSignal): Promise<void> {
    const { row } = worker;
    const secret = needs.ids.secret(32);
    const prepared = await launchOf(needs, options, worker, secret).catch((error) => failed(worker, error));
    if (!prepared) return;
    const { workerUrl, spec, address } = prepared;
    const expected = provider.handleOf(spec);
    const secretHash = needs.vault.hash(secret);
    const told = { by: "prepare", secretHash, workerUrl, ...(address === undefined ? {} : { address }) } as const;
    // the row in memory has the secret even if the database does not
    unstored.set(row.id, needs.clock.now() + limits.netMs);
    const isPrepared = await needs.registry.changeWorker(worker, {
      ...told,
      ...(expected ? { handle: expected } : {}),
    });
    unstored.delete(row.id);
    if (!isPrepared) return void (await forget(worker)); // another server has ended it
    const note = (doing: string) => {
      worker.doing = doing;
    };
    try {
      const phases: { imageAt?: number; madeAt?: number } = {};
      const reached = (phase: StartPhase) => {
        phases[`${phase}At`] = needs.clock.now();
      };
      const handle = await provider.start(spec, { note, reached, signal });
      const isStarted = await needs.registry.changeWorker(worker, {
        by: "start",
        ...phases,
        ...whereIs(worker.row, handle),
        // a fast worker may ask for a job before its engine reports it as running
        startedAt: Math.min(needs.clock.now(), worker.row.readyAt ?? Number.POSITIVE_INFINITY),
      });
      if (!isStarted) {
        await provider.kill(row.id, handle); // another server has ended it meanwhile
        return void (await forget(worker));
      }
      const endpointId = needs.registry.endpointByNo(row.endpointNo)?.id ?? "";
      needs.emit({ type: "worker.started", endpointId, workerId: row.id, provider: handle.provider, ref: handle.ref });
    } catch (error) {
      if (error instanceof StartUnsure) throw error; // what became of it is looked up, as after a crash of ours
      await failed(worker, error);
    }
  }

  async function failed(worker: LiveWorker, error: unknown): Promise<undefined> {
    const note = error instanceof Error ? error.message : String(error);
    const cause = error instanceof StartFailed ? { cause: error.blame } : {};
    await endWorker(needs, worker, { note, ...cause }, "it could not be started");
    return forget(worker);
  }

  async function neverStarted(worker: LiveWorker): Promise<undefined> {
    await endWorker(needs, worker, {}, "it was not started");
    unstored.delete(worker.row.id);
    return undefined;
  }

  async function ended(worker: LiveWorker): Promise<number | undefined> {
    const seen = await provider.look(worker.row.id, worker.row.handle);
    if (seen.state === "running") {
      gone.delete(worker.row.id); // it was only to be looked up
      return needs.clock.now();
    }
    if (seen.state === "unknown") return lost(worker, seen.why);
    const held = await needs.reader.heldBy(worker.row.no);
    const tail = failedToStart(worker.row, held.length, needs.clock.now()) ? await provider.logTail(worker.row.id) : "";
    const { how, exit } = endOf(worker.row, seen.exit, tail);
    // a job must not wait for a log that cannot be read
    const lastLines = held.some(isLastStart) ? await provider.logTail(worker.row.id).catch(() => "") : "";
    await endWorker(needs, worker, exit, how, { lastLines });
    return forget(worker);
  }

  /** Its provider does not know it any more: kills what may be left of it. */
  async function lost(worker: LiveWorker, why: string, { isBlameless = true } = {}): Promise<undefined> {
    await provider.kill(worker.row.id, worker.row.handle);
    await endWorker(needs, worker, {}, why, { isBlameless });
    return forget(worker);
  }

  async function forget({ row }: LiveWorker): Promise<undefined> {
    for (const of of [known, unstored, asked, killed, gone, frozenOrThawed]) of.delete(row.id);
    await provider.forget(row.id);
    return undefined;
  }

  async function askToStop(worker: LiveWorker): Promise<void> {
    if (asked.has(worker.row.id)) return;
    await provider.stop(worker.row.id);
    asked.add(worker.row.id);
    if (needs.registry.isShared)
      await needs.registry.changeWorker(worker, { by: "askToStop", askedAt: needs.clock.now() });
    // not earlier: a worker that has not got the signal yet would poll again at once
    worker.dismissed.abort();
  }

  async function kill(worker: LiveWorker): Promise<void> {
    const killing = provider.kill(worker.row.id, worker.row.handle);
    // its jobs must not wait for an engine that hangs or does not report the end
    const isPrompt = await isSettledWithin(needs.clock, limits.killPatienceMs, killing);
    if (!isPrompt || killed.has(worker.row.id)) await giveUpOn(needs, worker);
    await killing;
    killed.add(worker.row.id); // repeated every few seconds until it is seen to have ended
  }

  /** Tends a worker unless that is under way already; then it is tended again afterwards. */
  async function tendOne(worker: LiveWorker, now: number): Promise<number | undefined> {
    if (busy.has(worker.row.id)) {
      again.add(worker.row.id);
      return undefined;
    }
    busy.add(worker.row.id);
    try {
      return await tend(worker, now);
    } catch (error) {
      needs.emit({ type: "server.warning", message: `worker ${worker.row.id} could not be tended`, error });
      const { killAt, endedAt } = worker.row;
      if (killAt !== undefined && now >= killAt && endedAt === undefined) await giveUpOn(needs, worker).catch(() => {});
      return now + limits.netMs;
    } finally {
      busy.delete(worker.row.id);
      if (again.delete(worker.row.id)) needs.bell.ring("workers");
    }
  }

  return {
    name: "tend-workers",
    topics: ["workers"],
    gapMs: limits.loopGapMsMin,
    async tick(now) {
      const mine = needs.registry.liveWorkers().filter(({ row }) => needs.here.tends(row.hostNo));
      const looks: (number | undefined)[] = [];
      const tending = mine.map(async (worker) => looks.push(await tendOne(worker, now)));
      const givenUp = needs.registry.isShared ? strays.endGivenUp() : undefined;
      const all = Promise.all([...tending, givenUp, strays.endUnwanted()]);
      // a hanging engine must hold up only its own workers: late results are looked at when they come
      if (!(await isSettledWithin(needs.clock, limits.tendTurnMs, all)))
        void all.then(() => needs.bell.ring("workers"));
      return earliest(...looks, await easeMemory(needs, mine, now), await watchHandlers(now));
    },
  };
}
