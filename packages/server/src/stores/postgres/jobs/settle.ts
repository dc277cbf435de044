import type { JsonText } from "../../../domain/jobs/job.js";
import type { Holder, Report, Settled } from "../../../store/index.js";
import { code, statusOf } from "../../tables/job-state.js";
import { numbers, texts } from "../connection/arrays.js";
import { isLost } from "../connection/failures.js";
import { statement } from "../connection/statement.js";
import { tallied } from "../tallies.js";
import type { Verb } from "../writer.js";

export interface SettledRow {
  no: number;
  id: string;
  endpoint_no: number;
  status: number;
  has_webhook: number;
  queued_at: number;
  taken_at: number | null;
  finished_at: number;
}
export const settledColumns =
  "j.no, j.id, j.endpoint_no, j.status, j.has_webhook, j.queued_at, j.taken_at, j.finished_at, j.low_priority";

export const toSettled = (row: SettledRow): Settled => ({
  id: row.id,
  status: statusOf(row.status),
  delivery: row.has_webhook === 1,
  delayMs: (row.taken_at ?? row.finished_at) - row.queued_at,
  executionMs: row.taken_at === null ? 0 : row.finished_at - row.taken_at,
});

/** SQL fragment: the deliveries of the jobs in `source` that ended. */
export const delivered = (source: string): string => `delivered AS (
    INSERT INTO delivery (job_no, job_id, endpoint_no, webhook_id, url, state, next_at)
    SELECT s.no, s.id, s.endpoint_no, 'msg_' || replace(gen_random_uuid()::text, '-', ''), i.webhook, 'pending', s.finished_at
    FROM ${source} s JOIN job_input i ON i.job_no = s.no WHERE s.has_webhook = 1)`;

export const settleSql = {
  /** Looks up by the job's id: `status + 0` avoids the index of what its worker holds, which may be a thousand jobs. */
  settle: statement(
    ["lane", "endpointNos", "jobIds", "workerNos", "statuses", "times", "outputs", "errors"],
    `
  WITH word AS MATERIALIZED (
    SELECT * FROM unnest(:endpointNos::bigint[], :jobIds::text[], :workerNos::bigint[], :statuses::bigint[], :times::bigint[]) WITH ORDINALITY
      AS w (endpoint_no, id, worker_no, status, now, n)),
  settled AS (
    UPDATE job j SET status = w.status, finished_at = w.now, deadline_at = NULL,
      expires_at = least(j.ttl_end_at, w.now + j.retention_ms)
    FROM word w WHERE j.endpoint_no = w.endpoint_no AND j.id = w.id AND j.worker_no = w.worker_no AND j.status + 0 = ${code.IN_PROGRESS}
      AND j.expires_at > w.now
    RETURNING w.n, ${settledColumns}),
  outputs AS (
    INSERT INTO job_output (job_no, output, error)
    SELECT s.no, o.output, o.error FROM settled s
    JOIN unnest(:outputs::text[], :errors::text[]) WITH ORDINALITY AS o (output, error, n) ON o.n = s.n
    ON CONFLICT (job_no) DO UPDATE SET output = excluded.output, error = excluded.error, progress = NULL),
  ${delivered("settled")},
  ${tallied("settled", {
    running: "-count(*)",
    completed: `count(*) FILTER (WHERE status = ${code.COMPLETED})`,
    failed: `count(*) FILTER (WHERE status = ${code.FAILED})`,
  })}
  SELECT * FROM settled`,
  ),

  /** Finds whether this very report was recorded before its connection broke. */
  settled: statement(
    ["endpointNo", "jobId", "workerNo", "status", "finishedAt"],
    `SELECT ${settledColumns} FROM job j
    WHERE j.endpoint_no = :endpointNo AND j.id = :jobId AND j.worker_no = :workerNo AND j.status = :status AND j.finished_at = :finishedAt`,
  ),

  /** Reports from workers that no longer hold the job: each confirms a stop. */
  heardStopped: `UPDATE job j SET stop_wanted = 0
    FROM unnest($1::bigint[], $2::text[], $3::bigint[]) AS w (endpoint_no, id, worker_no)
    WHERE j.endpoint_no = w.endpoint_no AND j.id = w.id AND j.worker_no = w.worker_no AND j.stop_wanted = 1`,

  progress: statement(
    ["endpointNo", "jobId", "workerNo", "progress"],
    `
  WITH held AS MATERIALIZED (
    SELECT no FROM job WHERE endpoint_no = :endpointNo AND id = :jobId AND worker_no = :workerNo AND status = ${code.IN_PROGRESS} FOR SHARE)
  INSERT INTO job_output (job_no, progress) SELECT no, (:progress::text[])[1] FROM held
  ON CONFLICT (job_no) DO UPDATE SET progress = excluded.progress RETURNING job_no`,
  ),
};

/** Records workers' final results. */
export const settleVerb: Verb<[Report], Settled | undefined> = {
  key: ({ endpointNo, jobId }) => `${endpointNo}/${jobId}`,
  inKeyOrder: true,
  async run({ connection, lane, again }, calls) {
    const reports = calls.map(([report]) => report);
    const of = <T>(field: (report: Report) => T) => reports.map(field);
    const values = {
      lane,
      endpointNos: numbers(of(({ endpointNo }) => endpointNo)),
      jobIds: texts(of(({ jobId }) => jobId)),
      workerNos: numbers(of(({ workerNo }) => workerNo)),
      statuses: numbers(of(({ verdict }) => code[verdict.status])),
      times: numbers(of(({ now }) => now)),
      outputs: texts(of(({ verdict }) => verdict.output)),
      errors: texts(of(({ verdict }) => (verdict.status === "FAILED" ? JSON.stringify(verdict.error) : null))),
    };
    const rows = await connection.query<SettledRow & { n: number }>(...settleSql.settle.with(values));
    const settled = new Map(rows.map((row) => [row.n - 1, toSettled(row)]));
    const others = reports.filter((_, n) => !settled.has(n));
    if (again && others.length > 0) {
      const { endpointNo, jobId, workerNo, verdict, now } = others[0] as Report;
      const report = { endpointNo, jobId, workerNo, status: code[verdict.status], finishedAt: now };
      const [row] = await connection.query<SettledRow>(...settleSql.settled.with(report));
      if (row) return [toSettled(row)];
    }
    if (others.length > 0) {
      const stopped = connection.query(settleSql.heardStopped, [
        numbers(others.map(({ endpointNo }) => endpointNo)),
        texts(others.map(({ jobId }) => jobId)),
        numbers(others.map(({ workerNo }) => workerNo)),
      ]);
      // settled jobs are committed and must be announced; a stop not recorded here is confirmed by the next ping
      await stopped.catch((error) => {
        if (isLost(error) || settled.size === 0) throw error;
      });
    }
    return reports.map((_, n) => settled.get(n));
  },
};

/** Records a job's progress. */
export const progressVerb: Verb<[Holder & { readonly progress: JsonText }], boolean> = {
  callsMax: 1,
  async run({ connection }, [args]) {
    const [{ endpointNo, jobId, workerNo, progress }] = args as NonNullable<typeof args>;
    const values = { endpointNo, jobId, workerNo, progress: texts([progress]) };
    return [(await connection.query(...settleSql.progress.with(values))).length > 0];
  },
};
