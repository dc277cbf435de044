import {
  type Change,
  type Job,
  type JobStatus,
  type JsonText,
  mayHappen,
  type Verdict,
} from "../../domain/jobs/job.js";
import { limits } from "../../limits/index.js";
import type { Ask, HeldJob, JobStore, NewJob, Settled, Submitted, Taken, TakenJob } from "../../store/index.js";
import {
  boundedBody,
  code,
  type HeldRow,
  heldColumns,
  statusOf,
  type TakenRow,
  toHeldJob,
  toTakenJob,
} from "../tables/job-row.js";
import type { Database } from "./driver.js";
import { sizeOf } from "./parcel.js";
import type { Tallies } from "./tallies.js";
import type { Verbs } from "./transactions.js";
import type { GroupWriter } from "./writer.js";

const settledColumns = "no, id, endpoint_no, has_webhook, queued_at, taken_at, low_priority";
interface SettledRow {
  no: number;
  id: string;
  endpoint_no: number;
  has_webhook: number;
  queued_at: number;
  taken_at: number | null;
  low_priority: number;
}

const waiting = "SELECT no, place FROM job WHERE endpoint_no = ?3 AND status = 0 AND expires_at > ?2 ORDER BY place";
const taking = (
  which: string,
): string => `UPDATE job SET status = 1, worker_no = ?1, starts = starts + 1, taken_at = ?2,
    deadline_at = ?2 + execution_timeout_ms WHERE no IN (SELECT no FROM (${which}))
    RETURNING no, id, place, starts, low_priority, worker_no, queued_at, taken_at, deadline_at`;

const statements = (db: Database) => ({
  endpointOpen: db.prepare("SELECT 1 FROM endpoint WHERE no = ? AND deleted_at IS NULL"),
  workerOpen: db.prepare(`SELECT 1 FROM worker w JOIN endpoint e ON e.no = w.endpoint_no
    WHERE w.no = ? AND w.wanted = 'running' AND w.ended_at IS NULL AND e.deleted_at IS NULL`),
  knownKey:
    db.prepare(`SELECT i.job_id, i.body_hash, i.route, coalesce(CASE WHEN j.finished_at >= j.expires_at THEN NULL ELSE j.status END, i.last_status) AS status
    FROM idempotency i LEFT JOIN job j ON j.no = i.job_no AND j.id = i.job_id
    WHERE i.endpoint_no = ? AND i.key_hash = ? AND i.expires_at > ?`),
  dropKey: db.prepare("DELETE FROM idempotency WHERE endpoint_no = ? AND key_hash = ?"),
  addKey:
    db.prepare(`INSERT INTO idempotency (endpoint_no, key_hash, body_hash, route, job_no, job_id, last_status, expires_at)
    VALUES (?, ?, ?, ?, ?, ?, 0, ?)`),
  keepStatus: db.prepare("UPDATE idempotency SET last_status = ? WHERE job_no = ?"),
  insert:
    db.prepare(`INSERT INTO job (no, endpoint_no, id, place, status, low_priority, created_at, queued_at, ttl_end_at,
    expires_at, execution_timeout_ms, retention_ms, has_webhook, keyed) VALUES (?1, ?2, ?3, ?1, 0, ?4, ?5, ?5, ?6, ?6, ?7, ?8, ?9, ?10)`),
  insertInput: db.prepare(
    "INSERT INTO job_input (job_no, body, webhook, s3_config, policy) VALUES (?, CAST(? AS TEXT), ?, ?, ?)",
  ),
  input: db.prepare(`SELECT ${boundedBody}, i.webhook, i.s3_config, i.policy FROM job_input i WHERE i.job_no = ?`),
  takeOne: db.prepare(taking(`${waiting} LIMIT 1`)),
  // up to the job that fills the room: sizes are read without the inputs, and only where several jobs are asked for
  take: db.prepare(
    taking(`SELECT no FROM (SELECT no, sum(octet_length(body)) OVER (ORDER BY place ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
      FROM (${waiting} LIMIT ?4) waits CROSS JOIN job_input ON job_no = no) sized WHERE coalesce(before, 0) < ?5`),
  ),
  settle: db.prepare(`UPDATE job SET status = ?1, finished_at = ?2, deadline_at = NULL,
    expires_at = min(ttl_end_at, ?2 + retention_ms)
    WHERE endpoint_no = ?3 AND id = ?4 AND worker_no = ?5 AND status = 1 AND expires_at > ?2 RETURNING ${settledColumns}`),
  output: db.prepare(`INSERT INTO job_output (job_no, output, error) VALUES (?, CAST(? AS TEXT), ?)
    ON CONFLICT (job_no) DO UPDATE SET output = excluded.output, error = excluded.error, progress = NULL`),
  sameError: db.prepare(`INSERT INTO job_output (job_no, error) SELECT value, ?2 FROM json_each(?1) WHERE true
    ON CONFLICT (job_no) DO UPDATE SET output = NULL, error = excluded.error, progress = NULL`),
  heardStopped: db.prepare(`UPDATE job SET stop_wanted = 0
    WHERE endpoint_no = ? AND id = ? AND worker_no = ? AND stop_wanted = 1`),
  progress: db.prepare(`INSERT INTO job_output (job_no, progress)
    SELECT no, CAST(?4 AS TEXT) FROM job WHERE endpoint_no = ?1 AND id = ?2 AND worker_no = ?3 AND status = 1
    ON CONFLICT (job_no) DO UPDATE SET progress = excluded.progress`),
  giveBack: db.prepare(`UPDATE job SET status = 0, taken_at = NULL, deadline_at = NULL, expires_at = ttl_end_at,
    retries = retries + ?1, excused = excused + 1 - ?1
    WHERE no = ?2 AND status = 1 AND starts = ?3 AND worker_no = ?4 RETURNING ${settledColumns}`),
  end: db.prepare(`UPDATE job SET status = ?1, finished_at = ?2, deadline_at = NULL, stop_wanted = (status = 1 AND ?1 <> 3),
    expires_at = min(ttl_end_at, ?2 + retention_ms)
    WHERE no = ?3 AND status = ?4 AND starts = ?5 AND worker_no IS ?6 RETURNING ${settledColumns}`),
  retry: db.prepare(`UPDATE job SET status = 0, place = ?1, starts = 0, excused = 0, retries = 0, stop_wanted = 0,
    queued_at = ?2, taken_at = NULL, finished_at = NULL, expires_at = ttl_end_at
    WHERE no = ?3 AND status = ?4 AND starts = ?5 AND expires_at > ?2 RETURNING ${settledColumns}`),
  begin: db.prepare(`UPDATE job SET taken_at = ?1, deadline_at = ?2 + execution_timeout_ms
    WHERE no = ?3 AND status = 1 AND starts = ?4 AND worker_no = ?5`),
  supersede: db.prepare(
    "UPDATE delivery SET state = 'failed', next_at = NULL, ended_at = ? WHERE job_no = ? AND state = 'pending'",
  ),
  deliver: db.prepare(`INSERT INTO delivery (job_no, job_id, endpoint_no, webhook_id, url, state, next_at)
    SELECT ?1, ?2, ?3, 'msg_' || lower(hex(randomblob(12))), webhook, 'pending', ?4 FROM job_input WHERE job_no = ?1`),
  clearOutput: db.prepare("DELETE FROM job_output WHERE job_no = ?"),
  clearStream: db.prepare("DELETE FROM stream WHERE job_no = ?"),
  clearChunks: db.prepare("DELETE FROM chunk WHERE job_no = ?"),
  note: db.prepare(`INSERT INTO job_event (job_no, n, at, event, worker_no, note)
    SELECT ?1, coalesce(max(n), 0) + 1, ?2, ?3, ?4, ?5 FROM job_event WHERE job_no = ?1`),
  setTtl: db.prepare(`UPDATE job SET ttl_end_at = ?1,
    expires_at = CASE WHEN finished_at IS NULL THEN ?1 ELSE min(?1, finished_at + retention_ms) END
    WHERE no = ?2 AND expires_at > ?3`),
  confirmStopped: db.prepare("UPDATE job SET stop_wanted = 0 WHERE no = ? AND worker_no = ? AND stop_wanted = 1"),
  cancelWaiting:
    db.prepare(`UPDATE job SET status = 4, finished_at = ?1, expires_at = min(ttl_end_at, ?1 + retention_ms)
    WHERE no IN (SELECT no FROM job WHERE endpoint_no = ?2 AND status = 0 AND place <= ?3 AND expires_at > ?1
      ORDER BY place LIMIT ?4)
    RETURNING ${settledColumns}`),
  expired:
    db.prepare(`SELECT no, id, endpoint_no, status, low_priority, keyed, finished_at >= expires_at AS vanished FROM job
    WHERE expires_at <= ?1 AND stop_wanted = 0
    AND NOT (has_webhook = 1 AND EXISTS (SELECT 1 FROM delivery d WHERE d.job_no = job.no AND d.state = 'pending'))
    ORDER BY expires_at LIMIT ?2`),
  vanish: db.prepare(`UPDATE job SET status = 4, finished_at = ?1, deadline_at = NULL, stop_wanted = 1
    WHERE no = ?2 AND status = 1 RETURNING ${heldColumns}`),
  textBytes: db.prepare(`SELECT coalesce((SELECT octet_length(body) FROM job_input WHERE job_no = ?1), 0)
    + coalesce((SELECT octet_length(output) FROM job_output WHERE job_no = ?1), 0)
    + coalesce((SELECT sum(octet_length(output)) FROM chunk WHERE job_no = ?1), 0) AS bytes`),
  deleteJob: db.prepare("DELETE FROM job WHERE no = ?"),
  deleteInput: db.prepare("DELETE FROM job_input WHERE job_no = ?"),
  deleteEvents: db.prepare("DELETE FROM job_event WHERE job_no = ?"),
  deleteKeys: db.prepare(`DELETE FROM idempotency WHERE (endpoint_no, key_hash) IN
    (SELECT endpoint_no, key_hash FROM idempotency WHERE expires_at <= ?1 ORDER BY expires_at LIMIT ?2)`),
});

/** The queue's writes, run inside the writer's transactions. */
export class SqliteJobs {
  readonly #sql: ReturnType<typeof statements>;
  readonly #tallies: Tallies;

  constructor(db: Database, tallies: Tallies) {
    this.#sql = statements(db);
    this.#tallies = tallies;
  }

  submit(job: NewJob): Submitted {
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
    // the first place is the job's number for good: unlike a row id it is never used again
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
    sql.insertInput.run(no, job.body, job.webhook ?? null, job.s3Config ?? null, job.policy ?? null);
    if (key) {
      sql.dropKey.run(job.endpointNo, key.keyHash);
      sql.addKey.run(job.endpointNo, key.keyHash, key.bodyHash, key.route, no, job.id, key.expiresAt);
    }
    this.#tallies.add(job.endpointNo, { waiting: 1, waitingNormal: job.lowPriority ? 0 : 1 });
    return { kind: "submitted" };
  }

  take(endpointNo: number, asks: readonly Ask[], now: number): Taken {
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

  settle(endpointNo: number, jobId: string, workerNo: number, verdict: Verdict, now: number): Settled | undefined {
    const row: SettledRow | undefined = this.#sql.settle.get(code[verdict.status], now, endpointNo, jobId, workerNo);
    if (!row) {
      this.#sql.heardStopped.run(endpointNo, jobId, workerNo);
      return undefined;
    }
    const error = verdict.status === "FAILED" ? JSON.stringify(verdict.error) : null;
    this.#sql.output.run(row.no, verdict.output ?? null, error);
    this.#tallies.add(
      endpointNo,
      verdict.status === "FAILED" ? { running: -1, failed: 1 } : { running: -1, completed: 1 },
    );
    return this.#ended(row, verdict.status, now);
  }

  progress(endpointNo: number, jobId: string, workerNo: number, progress: JsonText): boolean {
    return Number(this.#sql.progress.run(endpointNo, jobId, workerNo, progress).changes) > 0;
  }

  change(job: Pick<Job, "no" | "status" | "starts" | "workerNo">, change: Change, now: number): Settled | undefined {
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
    const row: SettledRow | undefined = this.#sql.giveBack.get(
      excused ? 0 : 1,
      job.no,
      job.starts,
      job.workerNo ?? null,
    );
    if (!row) return undefined;
    this.#clearResult(row.no);
    this.#sql.note.run(row.no, now, "giveBack", job.workerNo ?? null, excused ? "excused" : null);
    this.#tallies.add(row.endpoint_no, {
      running: -1,
      waiting: 1,
      waitingNormal: 1 - row.low_priority,
      retried: excused ? 0 : 1,
    });
    return { id: row.id, status: "IN_QUEUE", delivery: false, delayMs: 0, executionMs: 0 };
  }

  #retry(job: Pick<Job, "no" | "status" | "starts" | "workerNo">, now: number): Settled | undefined {
    const place = this.#tallies.nextPlace();
    const row: SettledRow | undefined = this.#sql.retry.get(place, now, job.no, code[job.status], job.starts);
    if (!row) return undefined;
    this.#clearResult(row.no);
    this.#sql.supersede.run(now, row.no);
    this.#sql.note.run(row.no, now, "retry", job.workerNo ?? null, null);
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
    const row: SettledRow | undefined = this.#sql.end.get(
      code[to],
      now,
      job.no,
      code[job.status],
      job.starts,
      job.workerNo ?? null,
    );
    if (!row) return undefined;
    this.#sql.output.run(row.no, null, error === undefined ? null : JSON.stringify(error));
    this.#sql.note.run(row.no, now, event, job.workerNo ?? null, error ?? null);
    const left = job.status === "IN_QUEUE" ? { waiting: -1, waitingNormal: row.low_priority - 1 } : { running: -1 };
    this.#tallies.add(row.endpoint_no, to === "CANCELLED" ? left : { ...left, failed: 1 });
    return this.#ended(row, to, now);
  }

  begin({ no, starts, workerNo }: HeldJob, beganAt: number, beginsBy: number): void {
    this.#sql.begin.run(beganAt, beginsBy, no, starts, workerNo);
  }

  setTtl({ no }: Pick<Job, "no">, ttlEndAt: number, now: number): boolean {
    return Number(this.#sql.setTtl.run(ttlEndAt, no, now).changes) > 0;
  }

  confirmStopped(workerNo: number, jobNos: readonly number[]): void {
    for (const no of jobNos) this.#sql.confirmStopped.run(no, workerNo);
  }

  cancelWaiting(endpointNo: number, upToPlace: number, error: string, now: number, limit: number): Settled[] {
    const rows: SettledRow[] = this.#sql.cancelWaiting.all(now, endpointNo, upToPlace, limit);
    const normal = rows.filter((row) => row.low_priority === 0).length;
    this.#tallies.add(endpointNo, { waiting: -rows.length, waitingNormal: -normal });
    this.#sql.sameError.run(JSON.stringify(rows.map((row) => row.no)), JSON.stringify(error));
    return rows.map((row) => this.#ended(row, "CANCELLED", now));
  }

  sweep(now: number, limit: number): { deleted: number; stopped: HeldJob[]; more: boolean } {
    const rows = this.#sql.expired.all(now, limit);
    const stopped: HeldJob[] = [];
    let room: number = limits.sweepBytesMax;
    let deleted = 0;
    for (const row of rows) {
      if (room <= 0) return { deleted, stopped, more: true };
      if (row.status === code.IN_PROGRESS) {
        if (row.keyed) this.#sql.keepStatus.run(row.status, row.no);
        const held = this.#sql.vanish.get(now, row.no) as HeldRow;
        stopped.push(toHeldJob(held));
        this.#tallies.add(row.endpoint_no, { running: -1 });
        continue;
      }
      if (row.status === code.IN_QUEUE)
        this.#tallies.add(row.endpoint_no, { waiting: -1, waitingNormal: row.low_priority - 1 });
      if (row.keyed && !row.vanished) this.#sql.keepStatus.run(row.status, row.no);
      room -= this.#sql.textBytes.get(row.no).bytes;
      deleted++;
      this.#clearResult(row.no);
      this.#sql.deleteInput.run(row.no);
      this.#sql.deleteEvents.run(row.no);
      this.#sql.deleteJob.run(row.no);
    }
    this.#sql.deleteKeys.run(now, limit);
    return { deleted, stopped, more: rows.length === limit };
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

/** What the queue writes. */
export function jobVerbs(db: Database, tallies: Tallies): Verbs {
  const jobs = new SqliteJobs(db, tallies);
  // biome-ignore lint/suspicious/noExplicitAny: the arguments go on as they came
  return Object.fromEntries(verbs.map((verb) => [verb, (...args: any[]) => (jobs[verb] as any)(...args)]));
}

/** The queue's writes as calls to the writer. */
export function sqliteJobStore(writer: GroupWriter): JobStore {
  return {
    submit: (job) => writer.admit("submit", [job], sizeOf(job.body), job.endpointNo),
    isInOrder: true,
    take: (...args) => writer.follow("take", args, args[0]),
    settle: (...args) => writer.word("settle", args, sizeOf(args[3].output), args[0]),
    progress: (...args) => writer.word("progress", args, sizeOf(args[3]), args[0]),
    change: (...args) => writer.word("change", args),
    begin: (...args) => writer.word("begin", args),
    setTtl: (...args) => writer.call("setTtl", args),
    confirmStopped: (...args) => writer.word("confirmStopped", args),
    cancelWaiting: (...args) => writer.word("cancelWaiting", args, 0, args[0]),
    sweep: (...args) => writer.word("sweep", args),
  };
}
