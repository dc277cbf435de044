import { topics } from "../../bell.js";
import type { Signal } from "../../clock.js";
import { hearTake, isPrefetching } from "../../domain/jobs/prefetch.js";
import { runSpan, traceparentOf } from "../../domain/jobs/trace.js";
import { limits } from "../../limits/index.js";
import { either } from "../../lines/either.js";
import type { LiveWorker } from "../../memory/registry.js";
import type { HeldJob, TakenJob } from "../../store/index.js";
import { hideSecrets } from "../access/access-secret.js";
import type { Needs } from "../needs.js";
import { noteCall } from "../workers/worker-life.js";
import { loseJob } from "./change-job.js";
import type { LentBody } from "./lend-status.js";

type Taking = Needs<
  "jobs" | "reader" | "clock" | "bell" | "registry" | "emit" | "line" | "vault" | "secrets" | "hideInLog"
>;

export interface Take {
  readonly worker: LiveWorker;
  readonly count: number;
  /** The worker says that it holds nothing (`job_in_progress=0`). */
  readonly holdsNothing: boolean;
  /** It asks for a single job, and says that another is in progress (`job_in_progress=1`). */
  readonly isBusy?: boolean;
  /** Aborted when the poll's client is gone. */
  readonly gone: Signal;
}

export const finishedSilently = "The worker finished without reporting a result";

/**
 * A worker asks for jobs: the poll is held until some come or 20 s have passed (worker protocol: `job-take`). A worker
 * that says a job is in progress may post that job's result only after this reply, so its poll is held for just a
 * second.
 */
export async function takeJobs(needs: Taking, take: Take): Promise<TakenJob[]> {
  const { worker } = take;
  const arrivedAt = needs.clock.now();
  worker.habits = hearTake(worker.habits, arrivedAt, { count: take.count, isBusy: take.isBusy === true });
  if (worker.row.endedAt === undefined) await noteCall(needs, worker, { isTake: true });
  if (take.holdsNothing) await judgeIdle(needs, worker, arrivedAt);
  const poll = { arrivedAt };
  worker.polledAt = arrivedAt;
  worker.polls.add(poll);
  try {
    const jobs = await stand(needs, take);
    for (const job of jobs) worker.unwritten.add(job.id);
    try {
      if (jobs.some(({ s3Config }) => s3Config !== undefined)) await hideSecrets(needs, worker, jobs);
      if (jobs.length > 0) afterTake(needs, take, jobs);
    } catch (error) {
      await returnJobs(needs, worker, jobs);
      throw error;
    }
    return jobs;
  } finally {
    worker.polls.delete(poll);
    worker.polledAt = needs.clock.now();
  }
}

async function stand(needs: Taking, { worker, count, isBusy, gone }: Take): Promise<TakenJob[]> {
  // an ended worker whose processes live on would poll in a tight loop: its polls are held, too
  const { signal: over, release } = either(gone, ...(worker.row.endedAt === undefined ? [worker.dismissed] : []));
  const holdMs = isBusy ? limits.busyTakeHoldMs : limits.takeHoldMs;
  try {
    // a closed or ended worker gets no jobs, but its polls are held all the same
    if (worker.row.wanted !== "running" || worker.row.endedAt !== undefined) {
      await needs.clock.sleep(holdMs, over);
      return [];
    }
    const wanted = Math.min(count, await roomOf(needs, worker));
    if (wanted === 0) {
      await needs.clock.sleep(holdMs, over);
      return [];
    }
    worker.asksFor += wanted;
    const { jobs, leave } = needs.line(worker.row.endpointNo).stand(worker.row.no, wanted);
    void needs.clock.sleep(holdMs, over).then(leave);
    return await jobs.finally(() => {
      worker.asksFor -= wanted;
    });
  } finally {
    over.abort();
    release();
  }
}

/**
 * How many more jobs a worker may ask for. Every ping and poll looks at all that it holds, so they are bounded; they are
 * counted only when they may be too many, because nearly all workers hold a few.
 */
async function roomOf({ reader }: Needs<"reader">, worker: LiveWorker): Promise<number> {
  const max = limits.heldJobsMax - worker.asksFor;
  if (worker.mayHold >= max) worker.mayHold = (await reader.heldBy(worker.row.no)).length;
  return Math.max(0, max - worker.mayHold);
}

function afterTake(needs: Taking, { worker }: Take, jobs: readonly TakenJob[]): void {
  const { row } = worker;
  worker.busyAt = needs.clock.now();
  worker.mayHold += jobs.length;
  needs.registry.noteSlots(row.endpointNo, row.version, jobs.length);
  needs.bell.ring("deadlines");
  const endpointId = needs.registry.endpointByNo(row.endpointNo)?.id ?? "";
  for (const job of jobs) {
    needs.bell.ring(topics.job(job.id));
    needs.emit({ type: "job.taken", endpointId, jobId: job.id, workerId: row.id, delayMs: job.takenAt - job.queuedAt });
  }
  needs.bell.ring(topics.demand(row.endpointNo));
}

/**
 * A worker's precedence among the workers that ask for jobs, highest first. The most recently busy worker comes first,
 * so that the others become idle and can be stopped. A worker that runs a job and only prefetches the next comes last.
 */
export const precedenceOf = (worker: LiveWorker | undefined): number =>
  worker === undefined || (isPrefetching(worker.habits) && worker.habits.lastTake?.isBusy) ? 0 : worker.busyAt;

/** The reply to a take was written: from now on its jobs are the worker's. */
export function tookOver(worker: LiveWorker, jobs: readonly TakenJob[]): void {
  for (const job of jobs) worker.unwritten.delete(job.id);
}

/** The poll was gone before its reply could be written: its jobs go back, excused. */
export async function returnJobs(needs: Taking, worker: LiveWorker, jobs: readonly TakenJob[]): Promise<void> {
  tookOver(worker, jobs);
  const ids = new Set(jobs.map((job) => job.id));
  for (const held of await needs.reader.heldBy(worker.row.no)) {
    if (ids.has(held.id) && !held.stopWanted) await loseJob(needs, held, "the poll was gone", true);
  }
}

/**
 * A worker says that it holds nothing: the jobs we thought it held are lost, or have stopped. This does not apply to
 * jobs in the reply to another poll of that worker, which is not written yet.
 */
async function judgeIdle(needs: Taking, worker: LiveWorker, arrivedAt: number): Promise<void> {
  const since = Math.min(arrivedAt, ...[...worker.polls].map((poll) => poll.arrivedAt));
  const earlier = (held: HeldJob) => held.takenAt < since && !worker.unwritten.has(held.id);
  const all = (await needs.reader.heldBy(worker.row.no)).filter(earlier);
  if (all.length === 0) return;
  const stopped = all.filter((held) => held.stopWanted).map((held) => held.no);
  if (stopped.length > 0) await needs.jobs.confirmStopped({ workerNo: worker.row.no, jobNos: stopped });
  for (const held of all) if (!held.stopWanted) await loseJob(needs, held, finishedSilently, false);
  needs.bell.ring("expiries");
}

/**
 * Jobs as a worker receives them; memory for large inputs is on loan until `release`. Undefined if none became free in
 * time.
 */
export async function lendJobs(
  { vault, reader, inputShares, isTraced }: Needs<"vault" | "reader" | "inputShares" | "isTraced">,
  ownerNo: number,
  jobs: readonly TakenJob[],
  gone: Signal,
): Promise<LentBody | undefined> {
  const bytes = jobs.reduce((sum, { inputBytes }) => sum + inputBytes, 0);
  const isLarge = bytes > limits.takeReadBytesMax;
  const share = isLarge ? await inputShares.ask(ownerNo, bytes, gone, limits.takeLentWaitMs) : undefined;
  if (isLarge && !share) return undefined;
  const release = () => share?.release();
  try {
    const pieces: (string | Uint8Array)[] = [];
    for (const job of jobs) {
      const input = job.input === undefined ? await reader.input(job.no) : [job.input];
      if (!input) throw new Error(`the input of the job ${job.id} is gone`);
      if (pieces.length > 0) pieces.push(",");
      pieces.push(...jobPieces({ vault, isTraced }, job, input));
    }
    return { pieces, release, isWanted: () => inputShares.isWanted };
  } catch (error) {
    release();
    throw error;
  }
}

/**
 * The job object that a worker receives, as JSON text: exactly `id`, `input` and the optional fields that were given.
 */
function jobPieces(
  { vault, isTraced }: Needs<"vault" | "isTraced">,
  job: TakenJob,
  input: readonly (string | Uint8Array)[],
): (string | Uint8Array)[] {
  let rest = "";
  if (job.webhook !== undefined) rest += `,"webhook":${JSON.stringify(job.webhook)}`;
  if (job.s3Config !== undefined) rest += `,"s3Config":${vault.open(job.s3Config)}`;
  if (job.policy !== undefined) rest += `,"policy":${job.policy}`;
  if (isTraced) rest += `,"traceparent":"${traceparentOf(job, job.trace, runSpan(job.starts))}"`;
  return [`{"id":${JSON.stringify(job.id)},"input":`, ...input, `${rest}}`];
}
