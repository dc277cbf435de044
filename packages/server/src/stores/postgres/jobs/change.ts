import { type Change, type JobStatus, mayHappen, transitions } from "../../../domain/jobs/job.js";
import type { Begun, Changing, NewTtl, Purge, Settled, Stopped } from "../../../store/index.js";
import { auditColumns, type NewAuditRow } from "../../tables/audit.js";
import { code } from "../../tables/job-state.js";
import { numbers } from "../connection/arrays.js";
import type { Connection } from "../connection/connection.js";
import { statement } from "../connection/statement.js";
import { transaction } from "../connection/transaction.js";
import { tallied } from "../tallies.js";
import type { Verb } from "../writer.js";
import { delivered, type SettledRow, settledColumns, toSettled } from "./settle.js";

/** SQL fragment: clears the output of a job's earlier run. */
const cleared = (source: string) => `
  outputs AS (DELETE FROM job_output WHERE job_no IN (SELECT no FROM ${source})),
  streams AS (DELETE FROM stream WHERE job_no IN (SELECT no FROM ${source})),
  chunks AS (DELETE FROM chunk WHERE job_no IN (SELECT no FROM ${source}))`;

const noted = (source: string, at: string, event: string, worker: string, note: string) => `noted AS (
    INSERT INTO job_event (job_no, n, at, event, worker_no, note)
    SELECT s.no, coalesce((SELECT max(n) FROM job_event e WHERE e.job_no = s.no), 0) + 1, ${at}, ${event}, ${worker}, ${note}
    FROM ${source} s)`;

export const changeSql = {
  /** Later statements then see what a report that was in flight has written. */
  lock: "SELECT 1 FROM job WHERE endpoint_no = $1 AND no = $2 FOR UPDATE",

  /** Finds whether this very change was committed before its connection broke. */
  made: statement(
    ["endpointNo", "no", "at", "event", "workerNo"],
    `SELECT ${settledColumns} FROM job_event e JOIN job j ON j.endpoint_no = :endpointNo AND j.no = e.job_no
    WHERE e.job_no = :no AND e.at = :at AND e.event = :event AND e.worker_no IS NOT DISTINCT FROM :workerNo::bigint`,
  ),

  giveBack: statement(
    ["lane", "endpointNo", "no", "starts", "workerNo", "retries", "now"],
    `
  WITH back AS (
    UPDATE job j SET status = ${code.IN_QUEUE}, taken_at = NULL, deadline_at = NULL, expires_at = ttl_end_at,
      retries = retries + :retries::bigint, excused = excused + 1 - :retries
    WHERE j.endpoint_no = :endpointNo AND j.no = :no AND j.status = ${code.IN_PROGRESS} AND j.starts = :starts AND j.worker_no = :workerNo
    RETURNING ${settledColumns}),
  ${cleared("back")},
  ${noted("back", ":now::bigint", "'giveBack'", ":workerNo", "CASE WHEN :retries = 0 THEN 'excused' END")},
  ${tallied("back", {
    waiting: "1",
    waitingNormal: "sum(1 - low_priority)",
    running: "-1",
    retried: ":retries",
  })}
  SELECT id FROM back`,
  ),

  retry: statement(
    ["lane", "endpointNo", "no", "status", "starts", "now", "workerNo"],
    `
  WITH again AS (
    UPDATE job j SET status = ${code.IN_QUEUE}, place = nextval('place'), starts = 0, excused = 0, retries = 0, stop_wanted = 0, awaits_delivery = 0,
      queued_at = :now::bigint, taken_at = NULL, finished_at = NULL, expires_at = ttl_end_at
    WHERE j.endpoint_no = :endpointNo AND j.no = :no AND j.status = :status AND j.starts = :starts AND j.expires_at > :now
    RETURNING ${settledColumns}),
  ${cleared("again")},
  superseded AS (
    UPDATE delivery SET state = 'failed', next_at = NULL, held_by = NULL, ended_at = :now
    WHERE job_no IN (SELECT no FROM again) AND state = 'pending'),
  ${noted("again", ":now", "'retry'", ":workerNo::bigint", "NULL")},
  ${tallied("again", { waiting: "1", waitingNormal: "sum(1 - low_priority)" })}
  SELECT id FROM again`,
  ),

  end: statement(
    ["lane", "endpointNo", "no", "to", "from", "starts", "workerNo", "now", "error", "event", "note"],
    `
  WITH ended AS (
    UPDATE job j SET status = :to::smallint, finished_at = :now::bigint, deadline_at = NULL,
      stop_wanted = (j.status = ${code.IN_PROGRESS} AND :to <> ${code.FAILED})::int, expires_at = least(ttl_end_at, :now + retention_ms)
    WHERE j.endpoint_no = :endpointNo AND j.no = :no AND j.status = :from AND j.starts = :starts AND j.worker_no IS NOT DISTINCT FROM :workerNo::bigint
    RETURNING ${settledColumns}),
  outputs AS (
    INSERT INTO job_output (job_no, error) SELECT no, :error::text FROM ended
    ON CONFLICT (job_no) DO UPDATE SET output = NULL, error = excluded.error, progress = NULL),
  ${noted("ended", ":now", ":event::text", ":workerNo", ":note::text")},
  ${delivered("ended")},
  ${tallied("ended", {
    waiting: `-count(*) FILTER (WHERE :from = ${code.IN_QUEUE})`,
    waitingNormal: `-count(*) FILTER (WHERE :from = ${code.IN_QUEUE} AND low_priority = 0)`,
    running: `-count(*) FILTER (WHERE :from = ${code.IN_PROGRESS})`,
    failed: `count(*) FILTER (WHERE status <> ${code.CANCELLED})`,
  })}
  SELECT * FROM ended`,
  ),

  begin: statement(
    ["beganAt", "beginsBy", "endpointNo", "no", "starts", "workerNo"],
    `UPDATE job SET taken_at = :beganAt::bigint, deadline_at = :beginsBy::bigint + execution_timeout_ms
    WHERE endpoint_no = :endpointNo AND no = :no AND status = ${code.IN_PROGRESS} AND starts = :starts AND worker_no = :workerNo`,
  ),

  setTtl: statement(
    ["ttlEndAt", "endpointNo", "no", "now"],
    `UPDATE job SET ttl_end_at = :ttlEndAt::bigint,
    expires_at = CASE WHEN finished_at IS NULL THEN :ttlEndAt ELSE least(:ttlEndAt, finished_at + retention_ms) END
    WHERE endpoint_no = :endpointNo AND no = :no AND expires_at > :now RETURNING no`,
  ),

  confirmStopped: `UPDATE job SET stop_wanted = 0
    WHERE worker_no = $1 AND no = ANY ($2::bigint[]) AND stop_wanted = 1`,

  cancelWaiting: statement(
    ["lane", "endpointNo", "upToPlace", "now", "limit", "error", "entries"],
    `
  WITH chosen AS MATERIALIZED (
    SELECT no FROM job WHERE endpoint_no = :endpointNo AND status = ${code.IN_QUEUE} AND place <= :upToPlace AND expires_at > :now
    ORDER BY place LIMIT :limit FOR UPDATE),
  ended AS (
    UPDATE job j SET status = ${code.CANCELLED}, finished_at = :now::bigint, expires_at = least(ttl_end_at, :now + retention_ms)
    FROM chosen WHERE j.endpoint_no = :endpointNo AND j.no = chosen.no
    RETURNING ${settledColumns}),
  outputs AS (
    INSERT INTO job_output (job_no, error) SELECT no, :error::text FROM ended
    ON CONFLICT (job_no) DO UPDATE SET output = NULL, error = excluded.error, progress = NULL),
  audited AS (
    INSERT INTO audit (${auditColumns.join(", ")})
    SELECT ${auditColumns.join(", ")} FROM json_populate_recordset(NULL::audit, :entries::json)
    WHERE EXISTS (SELECT 1 FROM ended)),
  ${delivered("ended")},
  ${tallied("ended", {
    waiting: "-count(*)",
    waitingNormal: "-count(*) FILTER (WHERE low_priority = 0)",
  })}
  SELECT * FROM ended`,
  ),
};

const waits = (row: { id: string } | undefined): Settled | undefined =>
  row && { id: row.id, status: "IN_QUEUE", delivery: false, delayMs: 0, executionMs: 0 };

interface Applied extends Pick<Changing, "job" | "now"> {
  readonly connection: Connection;
  readonly lane: number;
}

/** What tells a job as it was read from its other starts. */
const keyOf = ({ endpointNo, no, starts, workerNo }: Begun["job"] | Changing["job"]) => ({
  endpointNo,
  no,
  starts,
  workerNo,
});

async function giveBack({ connection, lane, job, now }: Applied, excused: boolean): Promise<Settled | undefined> {
  const made = changeSql.giveBack.with({ lane, ...keyOf(job), retries: excused ? 0 : 1, now });
  return waits((await connection.query<{ id: string }>(...made))[0]);
}

async function retry({ connection, lane, job, now }: Applied): Promise<Settled | undefined> {
  const made = changeSql.retry.with({ lane, ...keyOf(job), status: code[job.status], now });
  return waits((await connection.query<{ id: string }>(...made))[0]);
}

async function end(
  { connection, lane, job, now }: Applied,
  to: JobStatus,
  event: string,
  error: string | undefined,
): Promise<Settled | undefined> {
  const stored = error === undefined ? null : JSON.stringify(error);
  const change = { to: code[to], from: code[job.status], now, error: stored, event, note: error ?? null };
  const [row] = await connection.query<SettledRow>(...changeSql.end.with({ lane, ...keyOf(job), ...change }));
  return row && toSettled(row);
}

function apply(to: Applied, change: Change): Promise<Settled | undefined> {
  switch (change.by) {
    case "giveBack":
      return giveBack(to, change.excused);
    case "retry":
      return retry(to);
    case "cancel":
      return end(to, "CANCELLED", "cancel", change.error);
    case "timeOut":
      return end(to, "TIMED_OUT", "timeOut", change.error);
    case "fail":
      return end(to, "FAILED", "fail", change.error);
  }
}

/** Applies a change if the job is still as it was read. */
export const changeVerb: Verb<[Changing], Settled | undefined> = {
  callsMax: 1,
  async run({ connection, lane, again }, [args]) {
    const [{ job, change, now }] = args as [Changing];
    if (!mayHappen(change.by, job.status)) return [undefined];
    if (again) {
      const { endpointNo, no, workerNo } = job;
      const made = changeSql.made.with({ endpointNo, no, at: now, event: change.by, workerNo });
      const [row] = await connection.query<SettledRow>(...made);
      if (row) return [transitions[change.by].to === "IN_QUEUE" ? waits(row) : toSettled(row)];
    }
    const changed = await transaction(connection, async () => {
      await connection.query(changeSql.lock, [job.endpointNo, job.no]);
      return apply({ connection, lane, job, now }, change);
    });
    return [changed];
  },
};

/** Records when a running job began. */
export const beginVerb: Verb<[Begun], void> = {
  callsMax: 1,
  async run({ connection }, [args]) {
    const [{ job, beganAt, beginsBy }] = args as [Begun];
    await connection.query(...changeSql.begin.with({ ...keyOf(job), beganAt, beginsBy }));
    return [undefined];
  },
};

export const setTtlVerb: Verb<[NewTtl], boolean> = {
  callsMax: 1,
  async run({ connection }, [args]) {
    const [{ job, ttlEndAt, now }] = args as [NewTtl];
    const { endpointNo, no } = job;
    return [(await connection.query(...changeSql.setTtl.with({ endpointNo, no, ttlEndAt, now }))).length > 0];
  },
};

export const confirmStoppedVerb: Verb<[Stopped], void> = {
  callsMax: 1,
  async run({ connection }, [args]) {
    const [{ workerNo, jobNos }] = args as [Stopped];
    await connection.query(changeSql.confirmStopped, [workerNo, numbers(jobNos)]);
    return [undefined];
  },
};

/** Cancels waiting jobs up to a place, one batch at a time, with what the audit log gets of it if any was waiting. */
export const cancelWaitingVerb: Verb<[Purge, readonly NewAuditRow[]], Settled[]> = {
  callsMax: 1,
  async run({ connection, lane }, [args]) {
    const [{ endpointNo, upToPlace, error, now, limit }, noted] = args as [Purge, readonly NewAuditRow[]];
    const entries = JSON.stringify(noted);
    const values = { lane, endpointNo, upToPlace, now, limit, error: JSON.stringify(error), entries };
    return [(await connection.query<SettledRow>(...changeSql.cancelWaiting.with(values))).map(toSettled)];
  },
};
