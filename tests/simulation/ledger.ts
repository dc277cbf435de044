import {
  type Change,
  isFinal,
  type JobStatus,
  mayHappen,
  type Verdict,
} from "../../packages/server/src/domain/jobs/job.js";
import { transitionOf, type WorkerChange } from "../../packages/server/src/domain/workers/worker-life.js";
import { limits } from "../../packages/server/src/limits/index.js";
import type { HeldJob, NewJob, Settled, Submitted, Taken } from "../../packages/server/src/store/index.js";
import { expiryOf, type Known, type KnownWorker, type Witness } from "./known.js";

const counts = () => ({ completed: 0, failed: 0, retried: 0 });

/** Reads every commit as it happens, and reports each one that breaks a rule. */
export class Ledger {
  readonly jobs = new Map<string, Known>();
  readonly workers = new Map<number, KnownWorker>();
  readonly keys = new Map<string, { jobId: string; until: number }>();
  readonly counts = new Map<number, ReturnType<typeof counts>>();
  readonly deleted = new Set<number>();
  readonly #broken: (rule: string, sentence: string) => void;
  readonly #tell: (line: string) => void;
  readonly #witness: Witness;
  #order = 0;
  /** The number of changes so far. */
  changes = 0;

  constructor(witness: Witness, note: (line: string) => void, broken: (rule: string, sentence: string) => void) {
    this.#witness = witness;
    this.#tell = note;
    this.#broken = broken;
  }

  #note(line: string): void {
    this.changes++;
    this.#tell(line);
  }

  countsOf(endpointNo: number) {
    const found = this.counts.get(endpointNo) ?? counts();
    this.counts.set(endpointNo, found);
    return found;
  }

  /** One answered call of a store. */
  // biome-ignore lint/suspicious/noExplicitAny: each verb has its own arguments and result
  saw = (verb: string, args: any[], result: any): void => {
    const read = this.#readers[verb];
    read?.(args, result);
  };

  // biome-ignore lint/suspicious/noExplicitAny: as above
  readonly #readers: Readonly<Record<string, (args: any[], result: any) => void>> = {
    "jobs.submit": ([job], result: Submitted) => this.#submitted(job, result),
    "jobs.take": ([{ endpointNo, now }], result: Taken) => this.#taken(endpointNo, now, result),
    "jobs.settle": ([{ jobId, workerNo, verdict, now }], result) =>
      this.#settled(jobId, workerNo, verdict, now, result),
    "jobs.progress": ([{ jobId, workerNo }], held: boolean) => this.#word("progress", jobId, workerNo, held),
    "jobs.change": ([{ job, change, now }], result) => this.#changed(job, change, now, result),
    "jobs.setTtl": ([{ job: asked, ttlEndAt }], found: boolean) => {
      const job = this.#byNo.get(asked.no);
      if (!job || !found) return;
      job.ttlEndAt = ttlEndAt;
      this.#note(`${job.id} has another ttl`);
    },
    "jobs.cancelWaiting": ([{ endpointNo, now }], result: Settled[]) => {
      for (const { id } of result) {
        const job = this.#find(id);
        if (job.status !== "IN_QUEUE") this.#broken("one final state", `${id} was purged while ${job.status}`);
        const asked = this.#witness.askedTo("purge", endpointNo) || this.#witness.askedTo("delete", endpointNo);
        if (!asked) this.#broken("only requested changes", `${id} was purged, and no client asked for it`);
        this.#ended(job, "CANCELLED", now);
      }
    },
    "jobs.sweep": (_, { stopped, deleted }: { stopped: HeldJob[]; deleted: number }) => {
      if (deleted > 0) this.#note(`${deleted} deleted`);
      for (const { id } of stopped) {
        const job = this.#find(id);
        job.status = "CANCELLED";
        job.vanished = true;
        job.holder = undefined;
        this.#note(`${id} vanished`);
      }
    },
    "reader.find": (_, job) => void (job && this.#byNo.set(job.no, this.#find(job.id))),
    "chunks.append": ([{ jobId, workerNo, chunks }], held: boolean) => {
      this.#word("chunk", jobId, workerNo, held);
      const job = this.jobs.get(jobId);
      if (job && held) job.chunks += chunks.length;
    },
    "chunks.handOut": ([{ jobNo }], { chunks }: { chunks: { index: number }[] }) => {
      const job = this.#byNo.get(jobNo);
      for (const { index } of chunks) {
        if (job && index !== job.handed) this.#broken("chunks in order", `${job.id}: ${index} after ${job.handed - 1}`);
        if (job) job.handed = index + 1;
      }
    },
    "chunks.handBack": ([{ jobNo, chunks }]) => {
      const job = this.#byNo.get(jobNo);
      if (job && chunks.length > 0 && job.handed === chunks.at(-1).index + 1) job.handed = chunks[0].index;
    },
    "workers.create": (_, row) => void this.workers.set(row.no, { ...row }),
    "workers.place": ([no, found], isPlaced) => void (isPlaced && this.#lived(no, { by: "place", ...found })),
    "workers.change": ([no, change], isChanged) => void (isChanged && this.#lived(no, change)),
    "endpoints.remove": ([no]) => void this.deleted.add(no),
  };

  readonly #byNo = new Map<number, Known>();

  #find(id: string): Known {
    const job = this.jobs.get(id);
    if (!job) throw new Error(`${id} was never submitted`);
    return job;
  }

  #submitted(submitted: NewJob, result: Submitted): void {
    const { idempotency, endpointNo, id, ttlEndAt } = submitted;
    const key = idempotency && `${endpointNo}/${idempotency.keyHash}`;
    const known = key === undefined ? undefined : this.keys.get(key);
    const isLive = known !== undefined && known.until > submitted.createdAt;
    if (result.kind === "known") {
      if (known?.jobId !== result.record.jobId) this.#broken("one key, one job", `a key gave ${result.record.jobId}`);
      return;
    }
    if (result.kind === "closed") return;
    if (isLive) this.#broken("one key, one job", `${id} was made, though its key belonged to ${known.jobId}`);
    if (this.deleted.has(endpointNo)) this.#broken("deletion ends everything", `${id} came to a deleted endpoint`);
    if (key !== undefined) this.keys.set(key, { jobId: id, until: idempotency?.expiresAt ?? 0 });
    this.#note(`${id} submitted`);
    this.jobs.set(id, {
      id,
      endpointNo,
      submitted,
      order: this.#order++,
      status: "IN_QUEUE",
      movedAt: submitted.createdAt,
      holder: undefined,
      takenAt: 0,
      finishedAt: undefined,
      ttlEndAt,
      starts: 0,
      excused: 0,
      retries: 0,
      ends: 0,
      again: 0,
      vanished: false,
      gone: false,
      chunks: 0,
      handed: 0,
    });
  }

  #taken(endpointNo: number, now: number, { jobs }: Taken): void {
    for (const taken of jobs) {
      const job = this.#find(taken.id);
      this.#byNo.set(taken.no, job);
      const worker = this.workers.get(taken.workerNo);
      const who = worker?.id ?? `worker ${taken.workerNo}`;
      this.#note(`${job.id} taken by ${who}`);
      if (job.status === "IN_PROGRESS")
        this.#broken("one holder", `${job.id} was given to ${who} while ${job.holder} has it`);
      else if (job.status !== "IN_QUEUE") this.#broken("one final state", `${job.id} was taken while ${job.status}`);
      if (expiryOf(job) <= now) this.#broken("ttl", `${job.id} was taken after its ttl`);
      // Of two calls in one commit the second may be answered first.
      const isResumed = worker?.wanted === "paused" && this.#witness.isResuming(worker.id);
      if ((worker?.wanted !== "running" && !isResumed) || worker?.endedAt !== undefined)
        this.#broken("closed workers get no job", `${job.id} was given to ${who}, which is ${worker?.wanted}`);
      if (this.deleted.has(endpointNo)) this.#broken("deletion ends everything", `${job.id} was taken`);
      for (const other of this.jobs.values()) {
        if (other.endpointNo !== endpointNo || other.status !== "IN_QUEUE" || other.gone || expiryOf(other) <= now)
          continue;
        if (other.order < job.order) this.#broken("first in, first out", `${job.id} was taken before ${other.id}`);
      }
      Object.assign(job, { status: "IN_PROGRESS", holder: taken.workerNo, takenAt: now, movedAt: now });
      job.starts++;
      if (taken.starts !== job.starts) this.#broken("starts", `${job.id}: ${taken.starts} instead of ${job.starts}`);
      if (job.starts - job.excused > limits.startsMax) this.#broken("starts", `${job.id} was started too often`);
    }
  }

  #isHeldBy(job: Known | undefined, workerNo: number): boolean {
    return job?.status === "IN_PROGRESS" && job.holder === workerNo;
  }

  #word(what: string, jobId: string, workerNo: number, held: boolean): void {
    const job = this.jobs.get(jobId);
    if (held && !this.#isHeldBy(job, workerNo)) this.#broken("only the holder's report counts", `${what} of ${jobId}`);
    if (!held && this.#isHeldBy(job, workerNo)) this.#broken("the holder's report counts", `${what} of ${jobId}`);
  }

  #settled(jobId: string, workerNo: number, verdict: Verdict, now: number, result: Settled | undefined): void {
    const job = this.jobs.get(jobId);
    const isHolder = this.#isHeldBy(job, workerNo);
    if (!result) {
      if (job && isHolder && expiryOf(job) > now)
        this.#broken("the holder's report counts", `the result of ${jobId} was dropped`);
      return;
    }
    const who = this.workers.get(workerNo)?.id ?? "";
    if (!job || !isHolder) {
      const rule = job && isFinal(job.status) ? "one final state" : "only the holder's report counts";
      this.#broken(rule, `${who} ended ${jobId}, which is ${job?.status} at ${job?.holder}`);
      return;
    }
    const { output } = verdict;
    const said = typeof output === "object" ? Buffer.from(output).toString() : output;
    if (!this.#witness.said(who, jobId, said))
      this.#broken("only the holder's report counts", `${who} never reported this result of ${jobId}`);
    this.#ended(job, verdict.status, now);
  }

  #ended(job: Known, status: JobStatus, now: number): void {
    this.#note(`${job.id} ${status}`);
    Object.assign(job, { status, finishedAt: now, movedAt: now, holder: undefined, ends: job.ends + 1 });
    if (status === "COMPLETED") this.countsOf(job.endpointNo).completed++;
    if (status === "FAILED" || status === "TIMED_OUT") this.countsOf(job.endpointNo).failed++;
  }

  #changed(
    asked: { id: string; no: number; workerNo?: number },
    change: Change,
    now: number,
    result: Settled | undefined,
  ): void {
    if (!result) return;
    const job = this.#find(asked.id);
    this.#byNo.set(asked.no, job);
    if (!mayHappen(change.by, job.status) || job.vanished)
      this.#broken("one final state", `${job.id} is ${job.status}: ${change.by}`);
    const isRunning = job.status === "IN_PROGRESS";
    if (isRunning && job.holder !== asked.workerNo)
      this.#broken("one holder", `${change.by} of ${job.id} is about another holder`);
    switch (change.by) {
      case "giveBack":
        this.#givenBack(job, change.excused, now);
        break;
      case "fail":
        if (job.starts - job.excused !== limits.startsMax)
          this.#broken("starts", `${job.id} failed after ${job.starts} starts`);
        this.#blame(job, "was failed");
        this.#ended(job, "FAILED", now);
        break;
      case "timeOut":
        if (now < job.takenAt + job.submitted.executionTimeoutMs)
          this.#broken("executionTimeout", `${job.id} was ended early`);
        this.#ended(job, "TIMED_OUT", now);
        break;
      case "cancel":
        if (!this.#witness.askedTo("cancel", job.id) && !this.deleted.has(job.endpointNo))
          this.#broken("only requested changes", `${job.id} was cancelled`);
        this.#ended(job, "CANCELLED", now);
        break;
      case "retry":
        if (!this.#witness.askedTo("retry", job.id)) this.#broken("only requested changes", `${job.id} was retried`);
        this.#note(`${job.id} retried`);
        Object.assign(job, { status: "IN_QUEUE", finishedAt: undefined, starts: 0, excused: 0, retries: 0 });
        Object.assign(job, { order: this.#order++, movedAt: now, again: job.again + 1, chunks: 0, handed: 0 });
    }
  }

  #givenBack(job: Known, excused: boolean, now: number): void {
    const worker = this.workers.get(job.holder as number);
    this.#note(`${job.id} given back by ${worker?.id}${excused ? ", excused" : ""}`);
    if (excused) {
      const isOurs = worker === undefined || worker.wanted === "stopped" || worker.endedAt !== undefined;
      if (!isOurs && !this.#witness.leftPoll(worker.id)) this.#broken("starts", `${job.id} was excused`);
      job.excused++;
    } else {
      // An expired job is deleted at the next sweep, in whatever state it is.
      if (expiryOf(job) > now) this.#blame(job, "was given back");
      job.retries++;
      this.countsOf(job.endpointNo).retried++;
    }
    Object.assign(job, { status: "IN_QUEUE", movedAt: now, holder: undefined, chunks: 0, handed: 0 });
  }

  /** A worker that makes no mistake never costs its job a start. */
  #blame(job: Known, what: string): void {
    const worker = this.workers.get(job.holder as number);
    if (worker && this.#witness.faultOf(worker.id, job.takenAt)) return;
    this.#broken("no start lost without a fault", `${job.id} ${what}, and ${worker?.id} did nothing wrong`);
  }

  #lived(no: number, { by, ...facts }: WorkerChange): void {
    const worker = this.workers.get(no);
    if (!worker) return;
    const { to = worker.wanted } = transitionOf(by);
    if (to === "ended") this.#note(`${worker.id} ended`);
    else if (to !== worker.wanted) this.#note(`${worker.id} wanted ${to}`);
    const known = { ...facts, wanted: to === "ended" ? worker.wanted : to };
    Object.assign(worker, Object.fromEntries(Object.entries(known).filter(([name]) => name in worker)));
  }
}
