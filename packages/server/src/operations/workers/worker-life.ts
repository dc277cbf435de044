import { topics } from "../../bell.js";
import { servingVersion } from "../../domain/endpoints/endpoint.js";
import { isPod } from "../../domain/pods/pod.js";
import { type Exit, failedToStart } from "../../domain/workers/worker.js";
import { limits } from "../../limits/index.js";
import type { LiveWorker } from "../../memory/registry.js";
import type { HeldJob } from "../../store/index.js";
import { loseJob } from "../jobs/change-job.js";
import type { Needs } from "../needs.js";
import { hasStandIn } from "./crash-pause.js";

type Living = Needs<"jobs" | "reader" | "clock" | "bell" | "registry" | "emit">;

const message = "a worker's readiness could not be stored";

/** Any protocol call is a sign of life; the first take says that the worker is ready. */
export async function noteCall(
  { clock, registry, bell, emit }: Needs<"clock" | "registry" | "bell" | "emit">,
  worker: LiveWorker,
  call: { isTake?: boolean; isPing?: boolean },
): Promise<void> {
  const now = clock.now();
  worker.seenAt = now;
  if (call.isPing && !worker.row.hasPinged) {
    await registry.changeWorker(worker, { by: "ping", hasPinged: true });
    bell.ring("workers");
  }
  if (!call.isTake) return;
  worker.busyAt = Math.max(worker.busyAt, worker.row.readyAt ?? now);
  if (worker.row.readyAt === undefined) await noteReady({ clock, registry, bell, emit }, worker);
}

/** Records that a worker is ready: it asked for its first job, or its pod's container runs. */
export async function noteReady(
  { clock, registry, bell, emit }: Needs<"clock" | "registry" | "bell" | "emit">,
  worker: LiveWorker,
): Promise<void> {
  const now = clock.now();
  const endpoint = registry.endpointByNo(worker.row.endpointNo);
  // not awaited: the first job must not wait for the disk. If lost in a crash, it is noted at the next take
  registry
    .changeWorker(worker, { by: "ready", readyAt: now })
    .catch((error) => emit({ type: "server.warning", message, error }));
  const { version } = worker.row;
  const isServing = endpoint !== undefined && servingVersion(endpoint) === version;
  if (isServing && (endpoint.failedStarts > 0 || endpoint.provenVersion !== version)) {
    worker.forgave = endpoint.failedStarts;
    await registry.noteStart(endpoint, version, { failedStarts: 0, at: now });
  }
  emit({
    type: "worker.ready",
    endpointId: endpoint?.id ?? "",
    workerId: worker.row.id,
    afterMs: now - worker.row.createdAt,
  });
  bell.ring(topics.demand(worker.row.endpointNo));
  bell.ring("workers");
}

/** Closes a worker: from now on the store gives it no more jobs. The scaler stops it when its last job is over. */
export async function closeWorker(
  { clock, registry, bell, emit }: Needs<"clock" | "registry" | "bell" | "emit">,
  worker: LiveWorker,
  why: string,
): Promise<void> {
  if (worker.row.wanted !== "running") return;
  if (!(await registry.changeWorker(worker, { by: "close", closedAt: clock.now(), why }))) return;
  emit({ type: "worker.stopping", endpointId: endpointIdOf(registry, worker), workerId: worker.row.id, why });
  bell.ring(topics.demand(worker.row.endpointNo));
}

/** Pauses an idle worker: no jobs from now on, and it is frozen with its memory kept. */
export async function pauseWorker(
  { clock, registry, bell, emit }: Needs<"clock" | "registry" | "bell" | "emit">,
  worker: LiveWorker,
  why: string,
): Promise<void> {
  if (worker.row.wanted !== "running" || worker.row.readyAt === undefined) return;
  const pausedAt = Math.max(clock.now(), (worker.row.resumedAt ?? 0) + 1);
  if (!(await registry.changeWorker(worker, { by: "pause", pausedAt, why }))) return;
  emit({ type: "worker.pausing", endpointId: endpointIdOf(registry, worker), workerId: worker.row.id, why });
  bell.ring("workers");
  bell.ring(topics.demand(worker.row.endpointNo)); // a worker that could not be woken stays frozen: it is kept for a time
}

/** Resumes a paused worker: it may get jobs from now on. */
export async function resumeWorker(
  { clock, registry, bell, emit }: Needs<"clock" | "registry" | "bell" | "emit">,
  worker: LiveWorker,
  why: string,
): Promise<void> {
  if (worker.row.wanted !== "paused") return;
  const { row } = worker;
  const resumedAt = Math.max(clock.now(), (row.pausedAt ?? 0) + 1);
  const pausedMs = row.pausedMs + resumedAt - (row.pausedAt ?? resumedAt);
  const saved = registry.changeWorker(worker, { by: "resume", resumedAt, pausedMs, why });
  worker.busyAt = clock.now(); // its idle timeout starts over
  emit({ type: "worker.resuming", endpointId: endpointIdOf(registry, worker), workerId: worker.row.id, why });
  bell.ring("workers"); // it wakes while this is written
  try {
    if (!(await saved)) return;
  } catch (error) {
    worker.row = { ...worker.row, wanted: row.wanted, resumedAt: row.resumedAt, pausedMs: row.pausedMs };
    throw error;
  }
  bell.ringElsewhere("workers"); // another server, on whose host it is frozen, may have looked before this was written
  bell.ring(topics.queue(row.endpointNo)); // it may have polled before this was written
}

/** Asks a worker to stop; it is killed after `graceMs`. */
export async function stopWorker(
  { clock, registry, bell, emit }: Living,
  worker: LiveWorker,
  why: string,
  graceMs: number,
) {
  const now = clock.now();
  const killAt = now + graceMs;
  let isFirst = worker.row.wanted !== "stopped";
  if (isFirst) {
    emit({ type: "worker.stopping", endpointId: endpointIdOf(registry, worker), workerId: worker.row.id, why });
    isFirst = await registry.changeWorker(worker, { by: "stop", stopAt: now, killAt, why });
  }
  const { endedAt, killAt: before = Number.POSITIVE_INFINITY } = worker.row;
  if (!isFirst && endedAt === undefined && killAt < before)
    await registry.changeWorker(worker, { by: "killSooner", killAt });
  bell.ring("workers");
}

/**
 * Ends a worker: running jobs that it held are given back (excused if we had asked it to stop), and jobs it was to stop
 * have stopped. `isBlameless`: its end says nothing about how workers of its version start. `lastLines`: the end of its
 * log, for the error of a job that is not started again.
 * Its row is marked as ended last: after a crash in between, the worker counts as not ended, and the rest is given back
 * then.
 */
export async function endWorker(
  needs: Living,
  worker: LiveWorker,
  exit: Exit,
  why: string,
  { isBlameless = false, lastLines = "" } = {},
): Promise<void> {
  const held = await needs.reader.heldBy(worker.row.no);
  if (worker.row.endedAt !== undefined) return;
  const { row } = worker;
  const said = row.exit?.note;
  const how = said ?? exit.note ?? why;
  const last = lastLines === "" ? how : withLog(how, lastLines.replaceAll("\0", ""));
  const ended = { endedAt: needs.clock.now(), exit: said === undefined ? exit : { ...exit, note: said } };
  worker.row = { ...row, ...ended };
  worker.dismissed.abort(); // otherwise the jobs given back now could be handed to its own poll
  let isOurs: boolean;
  try {
    await Promise.all([
      // at the same time: a scaler that saw only the end would start the next worker without a pause
      !isBlameless &&
        exit.cause !== "host" &&
        hasFailed(needs, worker, held.length, ended.endedAt) &&
        noteFailedStart(needs, worker, how),
      giveBackAll(needs, worker, last),
    ]);
    isOurs = await needs.registry.changeWorker(worker, { by: "end", ...ended });
    await giveBackAll(needs, worker, last); // jobs that a concurrent take has brought meanwhile
  } catch (error) {
    worker.row = row;
    throw error;
  }
  const endpointId = endpointIdOf(needs.registry, worker);
  if (isOurs) needs.emit({ type: "worker.ended", endpointId, workerId: row.id, exit, why });
  needs.bell.ring(topics.demand(row.endpointNo));
  needs.bell.ring("expiries");
}

/** A sentence and the end of a log, in which no line of the log is taken for part of the sentence. */
const withLog = (sentence: string, log: string): string =>
  log.includes("\n") ? `${sentence}. Its log ends:\n${log}` : `${sentence}: ${log}`;

/**
 * Gives up on a worker whose end is due but cannot be seen, because its engine is away: it gets no more jobs, and those
 * it holds are given back. Results that it sends later are dropped.
 */
export async function giveUpOn(needs: Living, worker: LiveWorker): Promise<void> {
  const { row } = worker;
  if (row.wanted === "running" || row.wanted === "paused")
    await needs.registry.changeWorker(worker, { by: "giveUp", closedAt: needs.clock.now() });
  await giveBackAll(needs, worker, row.exit?.note);
  needs.bell.ring(topics.demand(row.endpointNo));
}

async function giveBackAll(needs: Living, { row }: LiveWorker, last: string | undefined): Promise<void> {
  await settleOrphans(needs, await needs.reader.heldBy(row.no), row.wanted === "stopped", last);
}

/**
 * Settles jobs that no worker holds any more: running ones are given back, those to be stopped have stopped. `last`:
 * how their worker ended.
 */
export async function settleOrphans(
  needs: Living,
  held: readonly HeldJob[],
  excused: boolean,
  last?: string,
): Promise<void> {
  const why = excused ? "its worker was stopped by us" : "Each worker that ran this job was lost";
  await Promise.all(held.map((job) => (job.stopWanted ? undefined : loseJob(needs, job, why, excused, last))));
  // this includes jobs cancelled just now because their endpoint is deleted
  await Promise.all(held.map((job) => needs.jobs.confirmStopped({ workerNo: job.workerNo, jobNos: [job.no] })));
}

/** Whether a worker's end counts as a failed start. A pod is to stay, so that each end that nobody asked for does. */
function hasFailed({ registry }: Living, { row }: LiveWorker, held: number, now: number): boolean {
  if (isPod(registry.endpointByNo(row.endpointNo))) return row.wanted === "running";
  return failedToStart(row, held, now);
}

async function noteFailedStart(needs: Living, worker: LiveWorker, verdict: string): Promise<void> {
  const endpoint = needs.registry.endpointByNo(worker.row.endpointNo);
  const { version } = worker.row;
  // a worker of an earlier version says nothing about the version that serves
  if (!endpoint || endpoint.deletedAt !== undefined || version !== servingVersion(endpoint)) return;
  // a worker that asked for a job and ended soon after has reset the count too early
  const { readyAt } = worker.row;
  const isEarly = readyAt !== undefined && needs.clock.now() < readyAt + limits.crashPauseMsMax;
  const before = Math.max(endpoint.failedStarts, isEarly ? worker.forgave : 0);
  // workers started side by side fail as one: one image that cannot be pulled, one power cut
  const isSameStep = before > 0 && (worker.row.placedAt ?? worker.row.createdAt) <= (endpoint.failedAt ?? 0);
  const failedStarts = isSameStep ? before : before + 1;
  // compare the next failure with the last counted failure, or workers failing in turn would all belong to one step
  const at = isSameStep ? (endpoint.failedAt ?? needs.clock.now()) : needs.clock.now();
  const note = {
    failedStarts,
    at,
    verdict: verdict.replaceAll("\0", ""),
    isAlone: !(await hasStandIn(needs, endpoint)),
  };
  await needs.registry.noteStart(endpoint, version, note);
  needs.emit({
    type: "worker.startFailed",
    endpointId: endpoint.id,
    workerId: worker.row.id,
    failedStarts,
    why: verdict,
  });
}

const endpointIdOf = (registry: Living["registry"], worker: LiveWorker) =>
  registry.endpointByNo(worker.row.endpointNo)?.id ?? "";
