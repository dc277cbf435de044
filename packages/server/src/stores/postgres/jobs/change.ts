import { type Change, type JobStatus, mayHappen, transitions } from "../../../domain/jobs/job.js";
import type { Begun, Changing, NewTtl, Purge, Settled, Stopped } from "../../../store/index.js";
import { code } from "../../tables/job-state.js";
import { numbers } from "../connection/arrays.js";
import type { Connection } from "../connection/connection.js";
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
  made: `SELECT ${settledColumns} FROM job_event e JOIN job j ON j.endpoint_no = $1 AND j.no = e.job_no
    WHERE e.job_no = $2 AND e.at = $3 AND e.event = $4 AND e.worker_no IS NOT DISTINCT FROM $5::bigint`,

  giveBack: `
  WITH back AS (
    UPDATE job j SET status = ${code.IN_QUEUE}, taken_at = NULL, deadline_at = NULL, expires_at = ttl_end_at,
      retries = retries + $6::bigint, excused = excused + 1 - $6
    WHERE j.endpoint_no = $2 AND j.no = $3 AND j.status = ${code.IN_PROGRESS} AND j.starts = $4 AND j.worker_no = $5
    RETURNING ${settledColumns}),
  ${cleared("back")},
  ${noted("back", "$7::bigint", "'giveBack'", "$5", "CASE WHEN $6 = 0 THEN 'excused' END")},
  ${tallied("back", {
    waiting: "1",
    waitingNormal: "sum(1 - low_priority)",
    running: "-1",
    retried: "$6",
  })}
  SELECT id FROM back`,

  retry: `
  WITH again AS (
    UPDATE job j SET status = ${code.IN_QUEUE}, place = nextval('place'), starts = 0, excused = 0, retries = 0, stop_wanted = 0, awaits_delivery = 0,
      queued_at = $6::bigint, taken_at = NULL, finished_at = NULL, expires_at = ttl_end_at
    WHERE j.endpoint_no = $2 AND j.no = $3 AND j.status = $4 AND j.starts = $5 AND j.expires_at > $6
    RETURNING ${settledColumns}),
  ${cleared("again")},
  superseded AS (
    UPDATE delivery SET state = 'failed', next_at = NULL, ended_at = $6
    WHERE job_no IN (SELECT no FROM again) AND state = 'pending'),
  ${noted("again", "$6", "'retry'", "$7::bigint", "NULL")},
  ${tallied("again", { waiting: "1", waitingNormal: "sum(1 - low_priority)" })}
  SELECT id FROM again`,

  end: `
  WITH ended AS (
    UPDATE job j SET status = $4::smallint, finished_at = $8::bigint, deadline_at = NULL,
      stop_wanted = (j.status = ${code.IN_PROGRESS} AND $4 <> ${code.FAILED})::int, expires_at = least(ttl_end_at, $8 + retention_ms)
    WHERE j.endpoint_no = $2 AND j.no = $3 AND j.status = $5 AND j.starts = $6 AND j.worker_no IS NOT DISTINCT FROM $7::bigint
    RETURNING ${settledColumns}),
  outputs AS (
    INSERT INTO job_output (job_no, error) SELECT no, $9::text FROM ended
    ON CONFLICT (job_no) DO UPDATE SET output = NULL, error = excluded.error, progress = NULL),
  ${noted("ended", "$8", "$10::text", "$7", "$11::text")},
  ${delivered("ended")},
  ${tallied("ended", {
    waiting: `-count(*) FILTER (WHERE $5 = ${code.IN_QUEUE})`,
    waitingNormal: `-count(*) FILTER (WHERE $5 = ${code.IN_QUEUE} AND low_priority = 0)`,
    running: `-count(*) FILTER (WHERE $5 = ${code.IN_PROGRESS})`,
    failed: `count(*) FILTER (WHERE status <> ${code.CANCELLED})`,
  })}
  SELECT * FROM ended`,

  begin: `UPDATE job SET taken_at = $1::bigint, deadline_at = $2::bigint + execution_timeout_ms
    WHERE endpoint_no = $3 AND no = $4 AND status = ${code.IN_PROGRESS} AND starts = $5 AND worker_no = $6`,

  setTtl: `UPDATE job SET ttl_end_at = $1::bigint,
    expires_at = CASE WHEN finished_at IS NULL THEN $1 ELSE least($1, finished_at + retention_ms) END
    WHERE endpoint_no = $2 AND no = $3 AND expires_at > $4 RETURNING no`,

  confirmStopped: `UPDATE job SET stop_wanted = 0
    WHERE worker_no = $1 AND no = ANY ($2::bigint[]) AND stop_wanted = 1`,

  cancelWaiting: `
  WITH chosen AS MATERIALIZED (
    SELECT no FROM job WHERE endpoint_no = $2 AND status = ${code.IN_QUEUE} AND place <= $3 AND expires_at > $4
    ORDER BY place LIMIT $5 FOR UPDATE),
  ended AS (
    UPDATE job j SET status = ${code.CANCELLED}, finished_at = $4::bigint, expires_at = least(ttl_end_at, $4 + retention_ms)
    FROM chosen WHERE j.endpoint_no = $2 AND j.no = chosen.no
    RETURNING ${settledColumns}),
  outputs AS (
    INSERT INTO job_output (job_no, error) SELECT no, $6::text FROM ended
    ON CONFLICT (job_no) DO UPDATE SET output = NULL, error = excluded.error, progress = NULL),
  ${delivered("ended")},
  ${tallied("ended", {
    waiting: "-count(*)",
    waitingNormal: "-count(*) FILTER (WHERE low_priority = 0)",
  })}
  SELECT * FROM ended`,
};

const waits = (row: { id: string } | undefined): Settled | undefined =>
  row && { id: row.id, status: "IN_QUEUE", delivery: false, delayMs: 0, executionMs: 0 };

interface Applied extends Pick<Changing, "job" | "now"> {
  readonly connection: Connection;
  readonly lane: number;
}

async function giveBack({ connection, lane, job, now }: Applied, excused: boolean): Promise<Settled | undefined> {
  const values = [lane, job.endpointNo, job.no, job.starts, job.workerNo, excused ? 0 : 1, now];
  return waits((await connection.query<{ id: string }>(changeSql.giveBack, values))[0]);
}

async function retry({ connection, lane, job, now }: Applied): Promise<Settled | undefined> {
  const values = [lane, job.endpointNo, job.no, code[job.status], job.starts, now, job.workerNo];
  return waits((await connection.query<{ id: string }>(changeSql.retry, values))[0]);
}

async function end(
  { connection, lane, job, now }: Applied,
  to: JobStatus,
  event: string,
  error: string | undefined,
): Promise<Settled | undefined> {
  const stored = error === undefined ? null : JSON.stringify(error);
  const facts = [lane, job.endpointNo, job.no, code[to], code[job.status], job.starts, job.workerNo];
  const [row] = await connection.query<SettledRow>(changeSql.end, [...facts, now, stored, event, error ?? null]);
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
      const values = [job.endpointNo, job.no, now, change.by, job.workerNo];
      const [row] = await connection.query<SettledRow>(changeSql.made, values);
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
    const { endpointNo, no, starts, workerNo } = job;
    await connection.query(changeSql.begin, [beganAt, beginsBy, endpointNo, no, starts, workerNo]);
    return [undefined];
  },
};

export const setTtlVerb: Verb<[NewTtl], boolean> = {
  callsMax: 1,
  async run({ connection }, [args]) {
    const [{ job, ttlEndAt, now }] = args as [NewTtl];
    return [(await connection.query(changeSql.setTtl, [ttlEndAt, job.endpointNo, job.no, now])).length > 0];
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

/** Cancels waiting jobs up to a place, one batch at a time. */
export const cancelWaitingVerb: Verb<[Purge], Settled[]> = {
  callsMax: 1,
  async run({ connection, lane }, [args]) {
    const [{ endpointNo, upToPlace, error, now, limit }] = args as [Purge];
    const values = [lane, endpointNo, upToPlace, now, limit, JSON.stringify(error)];
    return [(await connection.query<SettledRow>(changeSql.cancelWaiting, values)).map(toSettled)];
  },
};
