import { heldColumns } from "../../tables/job-row.js";
import { code } from "../../tables/job-state.js";
import type { Database } from "../driver.js";
import { jobSql, textsInPieces } from "../texts/stored-texts.js";

const settledColumns = "no, id, endpoint_no, has_webhook, queued_at, taken_at, low_priority";
/** The columns that a change of a job returns. */
export interface SettledRow {
  no: number;
  id: string;
  endpoint_no: number;
  has_webhook: number;
  queued_at: number;
  taken_at: number | null;
  low_priority: number;
}

const waiting = `SELECT no, place FROM job WHERE endpoint_no = ?3 AND status = ${code.IN_QUEUE} AND expires_at > ?2 ORDER BY place`;
const taking = (
  which: string,
): string => `UPDATE job SET status = ${code.IN_PROGRESS}, worker_no = ?1, starts = starts + 1, taken_at = ?2,
    deadline_at = ?2 + execution_timeout_ms WHERE no IN (SELECT no FROM (${which}))
    RETURNING no, id, place, starts, low_priority, worker_no, queued_at, taken_at, deadline_at`;

const { bytes } = textsInPieces;

/** The hot statements of the queue. */
export const jobStatements = (db: Database) => ({
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
    VALUES (?, ?, ?, ?, ?, ?, ${code.IN_QUEUE}, ?)`),
  keepStatus: db.prepare("UPDATE idempotency SET last_status = ? WHERE job_no = ?"),
  insert:
    db.prepare(`INSERT INTO job (no, endpoint_no, id, place, status, low_priority, created_at, queued_at, ttl_end_at,
    expires_at, execution_timeout_ms, retention_ms, has_webhook, keyed) VALUES (?1, ?2, ?3, ?1, ${code.IN_QUEUE}, ?4, ?5, ?5, ?6, ?6, ?7, ?8, ?9, ?10)`),
  insertInput: db.prepare(
    "INSERT INTO job_input (job_no, body, body_text, webhook, s3_config, policy) VALUES (?, CAST(? AS TEXT), ?, ?, ?, ?)",
  ),
  input: db.prepare(
    `SELECT ${jobSql.boundedBody}, i.webhook, i.s3_config, i.policy FROM job_input i WHERE i.job_no = ?`,
  ),
  takeOne: db.prepare(taking(`${waiting} LIMIT 1`)),
  // up to the job that fills the room: sizes are read without the inputs, and only if several jobs are requested
  take: db.prepare(
    taking(`SELECT no FROM (SELECT no, sum(${bytes("i.body")}) OVER (ORDER BY place ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
      FROM (${waiting} LIMIT ?4) waits CROSS JOIN job_input i ON i.job_no = no) sized WHERE coalesce(before, 0) < ?5`),
  ),
  settle: db.prepare(`UPDATE job SET status = ?1, finished_at = ?2, deadline_at = NULL,
    expires_at = min(ttl_end_at, ?2 + retention_ms)
    WHERE endpoint_no = ?3 AND id = ?4 AND worker_no = ?5 AND status = ${code.IN_PROGRESS} AND expires_at > ?2 RETURNING ${settledColumns}`),
  output: db.prepare(`INSERT INTO job_output (job_no, output, output_text, error) VALUES (?, CAST(? AS TEXT), ?, ?)
    ON CONFLICT (job_no) DO UPDATE SET output = excluded.output, output_text = excluded.output_text, error = excluded.error,
      progress = NULL, progress_text = NULL`),
  sameError: db.prepare(`INSERT INTO job_output (job_no, error) SELECT value, ?2 FROM json_each(?1) WHERE true
    ON CONFLICT (job_no) DO UPDATE SET output = NULL, output_text = NULL, error = excluded.error, progress = NULL,
      progress_text = NULL`),
  heardStopped: db.prepare(`UPDATE job SET stop_wanted = 0
    WHERE endpoint_no = ? AND id = ? AND worker_no = ? AND stop_wanted = 1`),
  progress: db.prepare(`INSERT INTO job_output (job_no, progress, progress_text)
    SELECT no, CAST(?4 AS TEXT), ?5 FROM job WHERE endpoint_no = ?1 AND id = ?2 AND worker_no = ?3 AND status = ${code.IN_PROGRESS}
    ON CONFLICT (job_no) DO UPDATE SET progress = excluded.progress, progress_text = excluded.progress_text`),
  giveBack:
    db.prepare(`UPDATE job SET status = ${code.IN_QUEUE}, taken_at = NULL, deadline_at = NULL, expires_at = ttl_end_at,
    retries = retries + ?1, excused = excused + 1 - ?1
    WHERE no = ?2 AND status = ${code.IN_PROGRESS} AND starts = ?3 AND worker_no = ?4 RETURNING ${settledColumns}`),
  end: db.prepare(`UPDATE job SET status = ?1, finished_at = ?2, deadline_at = NULL, stop_wanted = (status = ${code.IN_PROGRESS} AND ?1 <> ${code.FAILED}),
    expires_at = min(ttl_end_at, ?2 + retention_ms)
    WHERE no = ?3 AND status = ?4 AND starts = ?5 AND worker_no IS ?6 RETURNING ${settledColumns}`),
  retry:
    db.prepare(`UPDATE job SET status = ${code.IN_QUEUE}, place = ?1, starts = 0, excused = 0, retries = 0, stop_wanted = 0, awaits_delivery = 0,
    queued_at = ?2, taken_at = NULL, finished_at = NULL, expires_at = ttl_end_at
    WHERE no = ?3 AND status = ?4 AND starts = ?5 AND expires_at > ?2 RETURNING ${settledColumns}`),
  begin: db.prepare(`UPDATE job SET taken_at = ?1, deadline_at = ?2 + execution_timeout_ms
    WHERE no = ?3 AND status = ${code.IN_PROGRESS} AND starts = ?4 AND worker_no = ?5`),
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
    db.prepare(`UPDATE job SET status = ${code.CANCELLED}, finished_at = ?1, expires_at = min(ttl_end_at, ?1 + retention_ms)
    WHERE no IN (SELECT no FROM job WHERE endpoint_no = ?2 AND status = ${code.IN_QUEUE} AND place <= ?3 AND expires_at > ?1
      ORDER BY place LIMIT ?4)
    RETURNING ${settledColumns}`),
  expired: db.prepare(`SELECT no, id, endpoint_no, status, low_priority, keyed, finished_at >= expires_at AS vanished,
      has_webhook = 1 AND EXISTS (SELECT 1 FROM delivery d WHERE d.job_no = job.no AND d.state = 'pending') AS is_pending
    FROM job WHERE expires_at <= ?1 AND stop_wanted = 0 AND awaits_delivery = 0 ORDER BY expires_at LIMIT ?2`),
  awaitDelivery: db.prepare("UPDATE job SET awaits_delivery = 1 WHERE no = ?"),
  vanish: db.prepare(`UPDATE job SET status = ${code.CANCELLED}, finished_at = ?1, deadline_at = NULL, stop_wanted = 1
    WHERE no = ?2 AND status = ${code.IN_PROGRESS} RETURNING ${heldColumns}`),
  textBytes: db.prepare(`SELECT coalesce((SELECT ${bytes("i.body")} FROM job_input i WHERE i.job_no = ?1), 0)
    + coalesce((SELECT ${bytes("o.output")} FROM job_output o WHERE o.job_no = ?1), 0)
    + coalesce((SELECT sum(${bytes("c.output")}) FROM chunk c WHERE c.job_no = ?1), 0) AS bytes`),
  deleteJob: db.prepare("DELETE FROM job WHERE no = ?"),
  deleteInput: db.prepare("DELETE FROM job_input WHERE job_no = ?"),
  deleteEvents: db.prepare("DELETE FROM job_event WHERE job_no = ?"),
  deleteKeys: db.prepare(`DELETE FROM idempotency WHERE (endpoint_no, key_hash) IN
    (SELECT endpoint_no, key_hash FROM idempotency WHERE expires_at <= ?1 ORDER BY expires_at LIMIT ?2)`),
});
