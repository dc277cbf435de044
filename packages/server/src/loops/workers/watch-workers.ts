import { isPod } from "../../domain/pods/pod.js";
import { hostIsSilent, isFrozen, isThrottled } from "../../domain/workers/worker.js";
import { limits } from "../../limits/index.js";
import type { LiveWorker } from "../../memory/registry.js";
import type { Needs } from "../../operations/needs.js";
import { closeWorker, endWorker, settleOrphans, stopWorker } from "../../operations/workers/worker-life.js";
import type { HeldJob } from "../../store/index.js";
import type { Loop } from "../loop.js";

type Watching = Needs<"jobs" | "reader" | "clock" | "bell" | "registry" | "emit" | "here">;

/**
 * Finds workers that were lost without being seen to end, and workers that do not stop a job they were told to stop.
 */
export function watchWorkersLoop(needs: Watching): Loop {
  return {
    name: "watch-workers",
    topics: ["workers"],
    gapMs: limits.watchGapMs,
    async tick(now) {
      const live = needs.registry.liveWorkers();
      const looks = [await watchStops(needs, now), await watchHosts(needs, live, now)];
      let lookAt = Math.min(...looks.map((at) => at ?? never));
      for (const worker of live) {
        const dueAt = Math.min(silentAt(worker, now), idleAt(needs, worker, now), mutedAt(worker, now));
        // awaiting a promise for each of thousands of healthy workers would be most of an idle server's work
        lookAt = Math.min(lookAt, now < dueAt ? dueAt : await judge(needs, worker, now));
      }
      // with thousands of workers one is always due, so all are looked at once a second
      return lookAt < never ? Math.max(now + limits.watchMs, lookAt) : undefined;
    },
  };
}

/** Treats a host whose server has been silent for 30 s as lost, with its workers; it stops them when it returns. */
async function watchHosts(needs: Watching, live: readonly LiveWorker[], now: number): Promise<number | undefined> {
  if (!needs.registry.isShared) return undefined;
  for (const worker of live) {
    const { hostNo } = worker.row;
    const silentAt = needs.registry.hostSilentAt(hostNo);
    if (needs.here.tends(hostNo) || silentAt === undefined || now < silentAt + limits.hostSilenceMs) continue;
    // a worker without a place runs nowhere
    if (isThrottled(worker.row)) {
      await needs.registry.changeWorker(worker, { by: "rehost", hostNo: needs.here.hostNo });
      needs.bell.ring("workers");
      continue;
    }
    const exit = { note: hostIsSilent };
    await endWorker(needs, worker, exit, hostIsSilent, { isBlameless: true });
  }
  // a take that was under way when its worker ended has left a job without a holder
  await settleOrphans(needs, await needs.reader.orphaned(), true);
  return now + limits.beatMs;
}

const never = Number.POSITIVE_INFINITY;

/** When a worker counts as silent: measured from its last call, on our clock, while we listen. */
function silentAt({ row, seenAt }: LiveWorker, now: number): number {
  const heardAt = Math.max(seenAt, row.resumedAt ?? 0);
  return row.hasPinged && isJudged(row, now) ? heardAt + limits.workerSilenceMs : never;
}

/** When a resumed worker has said nothing for too long. */
function mutedAt({ row, seenAt }: LiveWorker, now: number): number {
  if (row.resumedAt === undefined || seenAt >= row.resumedAt || !isJudged(row, now)) return never;
  return row.resumedAt + limits.resumeMs;
}

/** When a worker has neither asked for a job nor held one for too long. */
function idleAt({ registry }: Watching, { row, polls, polledAt, busyAt }: LiveWorker, now: number): number {
  if (row.address !== undefined) return never; // it serves requests, and its health is polled
  if (row.readyAt === undefined || row.wanted !== "running" || polls.size > 0 || !isJudged(row, now)) return never;
  if (isPod(registry.endpointByNo(row.endpointNo))) return never; // it takes no jobs
  return Math.max(polledAt, busyAt, row.resumedAt ?? 0) + limits.idlePingsMs;
}

const isJudged = (row: LiveWorker["row"], now: number): boolean =>
  row.wanted !== "paused" && !isFrozen(row) && (row.killAt === undefined || now < row.killAt);

/** Judges a worker whose time is up; resolves with when to look next. */
async function judge(needs: Watching, worker: LiveWorker, now: number): Promise<number> {
  if (now >= silentAt(worker, now)) await lose(needs, worker, "it has been silent for 30 s");
  else if ((await needs.reader.heldBy(worker.row.no)).length > 0) return silentAt(worker, now);
  else if (now >= mutedAt(worker, now)) await lose(needs, worker, "it was resumed and said nothing for 5 s");
  else await lose(needs, worker, "it pings, but neither holds a job nor asks for one");
  return never;
}

/** Gives up on a worker: its host kills it at once, and its jobs go back when its end is seen. */
async function lose(needs: Watching, worker: LiveWorker, why: string): Promise<void> {
  needs.emit({ type: "server.warning", message: `worker ${worker.row.id} is lost: ${why}` });
  const exit = { note: why };
  await needs.registry.changeWorker(worker, { by: "kill", killAt: needs.clock.now(), exit });
  needs.bell.ring("workers");
}

/**
 * After 5 s, replaces a worker that holds only jobs to stop. If it also holds other jobs, closes it, and stops it
 * after 30 s.
 */
async function watchStops(needs: Watching, now: number): Promise<number | undefined> {
  const byWorker = new Map<number, HeldJob[]>();
  for (const job of await needs.reader.unstopped())
    byWorker.set(job.workerNo, [...(byWorker.get(job.workerNo) ?? []), job]);
  const looks: number[] = [];
  for (const [no, jobs] of byWorker) {
    const worker = needs.registry.workerByNo(no);
    if (!worker || worker.row.endedAt !== undefined) continue;
    const lookAt = await pressStop(needs, worker, jobs, now);
    if (lookAt !== undefined) looks.push(lookAt);
  }
  return looks.length > 0 ? Math.min(...looks) : undefined;
}

async function pressStop(needs: Watching, worker: LiveWorker, jobs: readonly HeldJob[], now: number) {
  const since = Math.min(...jobs.map((job) => job.finishedAt ?? now));
  if (now < since + limits.stopPatienceMs) return since + limits.stopPatienceMs;
  const others = (await needs.reader.heldBy(worker.row.no)).filter((job) => !job.stopWanted);
  const why = "it did not stop a job it was told to stop";
  if (others.length === 0) {
    await stopOnce(needs, worker, why, limits.stoppedJobGraceMs);
    return undefined;
  }
  await closeWorker(needs, worker, why);
  if (now < since + limits.closePatienceMs) return since + limits.closePatienceMs;
  await stopOnce(needs, worker, why, needs.here.stopGraceMs);
  return undefined;
}

async function stopOnce(needs: Watching, worker: LiveWorker, why: string, graceMs: number): Promise<void> {
  const killAt = needs.clock.now() + graceMs;
  if (worker.row.wanted !== "stopped" || (worker.row.killAt ?? 0) > killAt)
    await stopWorker(needs, worker, why, graceMs);
}
