import { type Job, type JobStatus, mayHappen, type Verdict } from "../../../domain/jobs/job.js";
import { limits } from "../../../limits/index.js";
import type {
  Begun,
  Changing,
  DueBatch,
  HeldJob,
  Holder,
  NewJob,
  NewTtl,
  Purge,
  Report,
  Settled,
  Stopped,
  Submitted,
  Swept,
  Take,
  Taken,
  TakenJob,
} from "../../../store/index.js";
import type { NewAuditRow } from "../../tables/audit.js";
import { type HeldRow, type TakenRow, toHeldJob, toTakenJob } from "../../tables/job-row.js";
import { code, statusOf } from "../../tables/job-state.js";
import type { Database } from "../driver.js";
import type { Tallies } from "../tallies.js";
import { type StorableText, textValues } from "../texts/stored-texts.js";
import type { Verbs } from "../writing/transactions.js";
import { jobStatements, type SettledRow } from "./job-statements.js";

type StorableJob = Omit<NewJob, "body"> & { readonly body: StorableText };
type StorableReport = Omit<Report, "verdict"> & { readonly verdict: Storable<Verdict> };
type Storable<V extends Verdict> = V extends Verdict
  ? Omit<V, "output"> & { readonly output: StorableText | undefined }
  : never;

/** The queue's writes, run inside the writer's transactions. */
export class SqliteJobs {
  readonly #sql: ReturnType<typeof jobStatements>;
  readonly #tallies: Tallies;

  constructor(db: Database, tallies: Tallies) {
    this.#sql = jobStatements(db);
    this.#tallies = tallies;
  }

  submit(job: StorableJob): Submitted {
    const sql = this.#sql;
    if (!sql.endpointOpen.get(job.endpointNo)) return { kind: "closed" };
    const key = job.idempotency;
    if (key) {
      const known = sql.knownKey.get(job.endpointNo, key.keyHash, job.createdAt);
      if (known) {
        const { job_id: jobId, body_hash: bodyHash, route } = known;
        return { kind: "known", record: { jobId, bodyHash, route, lastStatus: statusOf(known.status) } };
      }
    }
    // the first place is the job's number for good: unlike a row id it is never reused
    const no = this.#tallies.nextPlace();
    sql.insert.run(
      no,
      job.endpointNo,
      job.id,
      Number(job.lowPriority),
      job.createdAt,
      job.ttlEndAt,
      job.executionTimeoutMs,
      job.retentionMs,
      Number(job.webhook !== undefined),
      Number(key !== undefined),
    );
    const { webhook, s3Config, policy, trace } = job;
    sql.insertInput.run(no, ...textValues(job.body), webhook ?? null, s3Config ?? null, policy ?? null, trace ?? null);
    if (key) {
      sql.dropKey.run(job.endpointNo, key.keyHash);
      sql.addKey.run(job.endpointNo, key.keyHash, key.bodyHash, key.route, no, job.id, key.expiresAt);
    }
    this.#tallies.add(job.endpointNo, { waiting: 1, waitingNormal: job.lowPriority ? 0 : 1 });
    return { kind: "submitted" };
  }

  take({ endpointNo, asks, now }: Take): Taken {
    const jobs: TakenJob[] = [];
    let room: number = limits.takeBytesMax;
    for (const { workerNo, count } of asks) {
      if (!this.#sql.workerOpen.get(workerNo)) continue;
      const { takeOne, take } = this.#sql;
      const found =
        count === 1 ? takeOne.all(workerNo, now, endpointNo) : take.all(workerNo, now, endpointNo, count, room);
      const rows: (TakenRow & { low_priority: number })[] = found.sort((a, b) => a.place - b.place);
      for (const row of rows) {
        const input = this.#sql.input.get(row.no);
        jobs.push(toTakenJob({ ...row, ...input }));
        room -= input.body_bytes;
      }
      const normal = rows.filter((row) => row.low_priority === 0).length;
      this.#tallies.add(endpointNo, { waiting: -rows.length, waitingNormal: -normal, running: rows.length });
      if (room <= 0) return { jobs, dry: false };
      if (rows.length < count) return { jobs, dry: true };
    }
    return { jobs, dry: false };
  }

  settle({ endpointNo, jobId, workerNo, verdict, now }: StorableReport): Settled | undefined {
    const row: SettledRow | undefined = this.#sql.settle.get(code[verdict.status], now, endpointNo, jobId, workerNo);
    if (!row) {
      this.#sql.heardStopped.run(endpointNo, jobId, workerNo);
      return undefined;
    }
    const error = verdict.status === "FAILED" ? JSON.stringify(verdict.error) : null;
    this.#sql.output.run(row.no, ...textValues(verdict.output), error);
    this.#tallies.add(
      endpointNo,
      verdict.status === "FAILED" ? { running: -1, failed: 1 } : { running: -1, completed: 1 },
    );
    return this.#ended(row, verdict.status, now);
  }

  progress({ endpointNo, jobId, workerNo, progress }: Holder & { readonly progress: StorableText }): boolean {
    return Number(this.#sql.progress.run(endpointNo, jobId, workerNo, ...textValues(progress)).changes) > 0;
  }

  change({ job, change, now }: Changing): Settled | undefined {
    if (!mayHappen(change.by, job.status)) return undefined;
    switch (change.by) {
      case "giveBack":
        return this.#giveBack(job, change.excused, now);
      case "retry":
        return this.#retry(job, now);
      case "cancel":
        return this.#end(job, "CANCELLED", "cancel", change.error, now);
      case "timeOut":
        return this.#end(job, "TIMED_OUT", "timeOut", change.error, now);
      case "fail":
        return this.#end(job, "FAILED", "fail", change.error, now);
    }
  }

  #giveBack(job: Pick<Job, "no" | "starts" | "workerNo">, excused: boolean, now: number): Settled | undefined {
    const { no, starts, workerNo = null } = job;
    const retries = excused ? 0 : 1;
    const row: SettledRow | undefined = this.#sql.giveBack.get({ retries, no, starts, workerNo });
    if (!row) return undefined;
    this.#clearResult(row.no);
    this.#sql.note.run({ jobNo: no, at: now, event: "giveBack", workerNo, note: excused ? "excused" : null });
    this.#tallies.add(row.endpoint_no, {
      running: -1,
      waiting: 1,
      waitingNormal: 1 - row.low_priority,
      retried: retries,
    });
    return { id: row.id, status: "IN_QUEUE", delivery: false, delayMs: 0, executionMs: 0 };
  }

  #retry(job: Pick<Job, "no" | "status" | "starts" | "workerNo">, now: number): Settled | undefined {
    const place = this.#tallies.nextPlace();
    const { no, starts, workerNo = null } = job;
    const row: SettledRow | undefined = this.#sql.retry.get({ place, now, no, status: code[job.status], starts });
    if (!row) return undefined;
    this.#clearResult(row.no);
    this.#sql.supersede.run(now, row.no);
    this.#sql.note.run({ jobNo: no, at: now, event: "retry", workerNo, note: null });
    this.#tallies.add(row.endpoint_no, { waiting: 1, waitingNormal: 1 - row.low_priority });
    return { id: row.id, status: "IN_QUEUE", delivery: false, delayMs: 0, executionMs: 0 };
  }

  #end(
    job: Pick<Job, "no" | "status" | "starts" | "workerNo">,
    to: JobStatus,
    event: string,
    error: string | undefined,
    now: number,
  ) {
    const { no, starts, workerNo = null } = job;
    const states = { to: code[to], from: code[job.status] };
    const row: SettledRow | undefined = this.#sql.end.get({ ...states, now, no, starts, workerNo });
    if (!row) return undefined;
    const stored = error === undefined ? null : JSON.stringify(error);
    this.#sql.output.run(no, ...textValues(undefined), stored);
    this.#sql.note.run({ jobNo: no, at: now, event, workerNo, note: error ?? null });
    const left = job.status === "IN_QUEUE" ? { waiting: -1, waitingNormal: row.low_priority - 1 } : { running: -1 };
    this.#tallies.add(row.endpoint_no, to === "CANCELLED" ? left : { ...left, failed: 1 });
    return this.#ended(row, to, now);
  }

  begin({ job: { no, starts, workerNo }, beganAt, beginsBy }: Begun): void {
    this.#sql.begin.run({ beganAt, beginsBy, no, starts, workerNo });
  }

  setTtl({ job: { no }, ttlEndAt, now }: NewTtl): boolean {
    return Number(this.#sql.setTtl.run(ttlEndAt, no, now).changes) > 0;
  }

  confirmStopped({ workerNo, jobNos }: Stopped): void {
    for (const no of jobNos) this.#sql.confirmStopped.run(no, workerNo);
  }

  /** `entries`: what the audit log gets of it if any job was waiting. */
  cancelWaiting({ endpointNo, upToPlace, error, now, limit }: Purge, entries: readonly NewAuditRow[]): Settled[] {
    const rows: SettledRow[] = this.#sql.cancelWaiting.all({ now, endpointNo, upToPlace, limit });
    const normal = rows.filter((row) => row.low_priority === 0).length;
    this.#tallies.add(endpointNo, { waiting: -rows.length, waitingNormal: -normal });
    this.#sql.sameError.run(JSON.stringify(rows.map((row) => row.no)), JSON.stringify(error));
    if (rows.length > 0) for (const entry of entries) this.#sql.noteChange.run(entry);
    return rows.map((row) => this.#ended(row, "CANCELLED", now));
  }

  sweep({ now, limit }: DueBatch): Swept {
    const rows = this.#sql.expired.all(now, limit);
    const stopped: HeldJob[] = [];
    let room: number = limits.sweepBytesMax;
    let chunksLeft: number = limits.chunksTrimmedAtOnce;
    let deleted = 0;
    for (const row of rows) {
      if (room <= 0) return { deleted, stopped, more: true };
      if (row.is_pending) {
        this.#sql.awaitDelivery.run(row.no);
        continue;
      }
      if (row.status === code.IN_PROGRESS) {
        if (row.keyed) this.#sql.keepStatus.run(row.status, row.no);
        const held = this.#sql.vanish.get(now, row.no) as HeldRow;
        stopped.push(toHeldJob(held));
        this.#tallies.add(row.endpoint_no, { running: -1 });
        continue;
      }
      room -= this.#sql.textBytes.get(row.no).bytes;
      chunksLeft -= Number(this.#sql.trimChunks.run(row.no, chunksLeft).changes);
      if (chunksLeft <= 0) return { deleted, stopped, more: true }; // it stays, hidden, until all its chunks are gone
      if (row.status === code.IN_QUEUE)
        this.#tallies.add(row.endpoint_no, { waiting: -1, waitingNormal: row.low_priority - 1 });
      if (row.keyed && !row.vanished) this.#sql.keepStatus.run(row.status, row.no);
      deleted++;
      this.#clearResult(row.no);
      this.#sql.deleteInput.run(row.no);
      this.#sql.deleteEvents.run(row.no);
      this.#sql.deleteJob.run(row.no);
    }
    const keysDeleted = Number(this.#sql.deleteKeys.run(now, limit).changes);
    return { deleted, stopped, more: [rows.length, keysDeleted].includes(limit) };
  }

  #clearResult(jobNo: number): void {
    this.#sql.clearOutput.run(jobNo);
    this.#sql.clearStream.run(jobNo);
    this.#sql.clearChunks.run(jobNo);
  }

  #ended(row: SettledRow, status: JobStatus, now: number): Settled {
    if (row.has_webhook) this.#sql.deliver.run(row.no, row.id, row.endpoint_no, now);
    return {
      id: row.id,
      status,
      delivery: row.has_webhook === 1,
      delayMs: (row.taken_at ?? now) - row.queued_at,
      executionMs: row.taken_at === null ? 0 : now - row.taken_at,
    };
  }
}

const verbs = [
  "submit",
  "take",
  "settle",
  "progress",
  "change",
  "begin",
  "setTtl",
  "confirmStopped",
  "cancelWaiting",
  "sweep",
] as const;

/** The writes of the queue. */
export function jobVerbs(db: Database, tallies: Tallies): Verbs {
  const jobs = new SqliteJobs(db, tallies);
  // biome-ignore lint/suspicious/noExplicitAny: the arguments are passed on as they came
  return Object.fromEntries(verbs.map((verb) => [verb, (...args: any[]) => (jobs[verb] as any)(...args)]));
}
