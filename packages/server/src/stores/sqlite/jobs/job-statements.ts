import { limits } from "../../../limits/index.js";
import { auditColumns } from "../../tables/audit.js";
import { heldColumns } from "../../tables/job-row.js";
import { code } from "../../tables/job-state.js";
import type { Database } from "../driver.js";
import { prepareNamed, prepareOrdered } from "../statement.js";
import { trimChunks } from "../texts/chunks.js";
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

const waiting = `SELECT no, place FROM job WHERE endpoint_no = :endpointNo AND status = ${code.IN_QUEUE} AND expires_at > :now ORDER BY place`;
const taking = (
  which: string,
): string => `UPDATE job SET status = ${code.IN_PROGRESS}, worker_no = :workerNo, starts = starts + 1, taken_at = :now,
    deadline_at = :now + execution_timeout_ms WHERE no IN (SELECT no FROM (${which}))
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
  addKey: prepareOrdered(
    db,
    ["endpointNo", "keyHash", "bodyHash", "route", "jobNo", "jobId", "expiresAt"],
    `INSERT INTO idempotency (endpoint_no, key_hash, body_hash, route, job_no, job_id, last_status, expires_at)
    VALUES (:endpointNo, :keyHash, :bodyHash, :route, :jobNo, :jobId, ${code.IN_QUEUE}, :expiresAt)`,
  ),
  keepStatus: db.prepare("UPDATE idempotency SET last_status = ? WHERE job_no = ?"),
  insert: prepareOrdered(
    db,
    [
      "no",
      "endpointNo",
      "id",
      "lowPriority",
      "createdAt",
      "ttlEndAt",
      "executionTimeoutMs",
      "retentionMs",
      "hasWebhook",
      "keyed",
    ],
    `INSERT INTO job (no, endpoint_no, id, place, status, low_priority, created_at, queued_at, ttl_end_at,
    expires_at, execution_timeout_ms, retention_ms, has_webhook, keyed)
    VALUES (:no, :endpointNo, :id, :no, ${code.IN_QUEUE}, :lowPriority, :createdAt, :createdAt, :ttlEndAt, :ttlEndAt,
      :executionTimeoutMs, :retentionMs, :hasWebhook, :keyed)`,
  ),
  insertInput: prepareOrdered(
    db,
    ["jobNo", "body", "bodyTextNo", "webhook", "s3Config", "policy", "trace"],
    `INSERT INTO job_input (job_no, body, body_text, webhook, s3_config, policy, trace)
    VALUES (:jobNo, CAST(:body AS TEXT), :bodyTextNo, :webhook, :s3Config, :policy, :trace)`,
  ),
  input: db.prepare(
    `SELECT ${jobSql.boundedBody}, i.webhook, i.s3_config, i.policy, i.trace FROM job_input i WHERE i.job_no = ?`,
  ),
  takeOne: prepareOrdered(db, ["workerNo", "now", "endpointNo"], taking(`${waiting} LIMIT 1`)),
  // up to the job that fills the room: sizes are read without the inputs, and only if several jobs are requested
  take: prepareOrdered(
    db,
    ["workerNo", "now", "endpointNo", "count", "room"],
    taking(`SELECT no FROM (SELECT no, sum(${bytes("i.body")}) OVER (ORDER BY place ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
      FROM (${waiting} LIMIT :count) waits CROSS JOIN job_input i ON i.job_no = no) sized WHERE coalesce(before, 0) < :room`),
  ),
  settle: prepareOrdered(
    db,
    ["status", "now", "endpointNo", "jobId", "workerNo"],
    `UPDATE job SET status = :status, finished_at = :now, deadline_at = NULL,
    expires_at = min(ttl_end_at, :now + retention_ms)
    WHERE endpoint_no = :endpointNo AND id = :jobId AND worker_no = :workerNo AND status = ${code.IN_PROGRESS} AND expires_at > :now RETURNING ${settledColumns}`,
  ),
  output: prepareOrdered(
    db,
    ["jobNo", "output", "outputTextNo", "error"],
    `INSERT INTO job_output (job_no, output, output_text, error) VALUES (:jobNo, CAST(:output AS TEXT), :outputTextNo, :error)
    ON CONFLICT (job_no) DO UPDATE SET output = excluded.output, output_text = excluded.output_text, error = excluded.error,
      progress = NULL, progress_text = NULL`,
  ),
  sameError: db.prepare(`INSERT INTO job_output (job_no, error) SELECT value, ?2 FROM json_each(?1) WHERE true
    ON CONFLICT (job_no) DO UPDATE SET output = NULL, output_text = NULL, error = excluded.error, progress = NULL,
      progress_text = NULL`),
  heardStopped: db.prepare(`UPDATE job SET stop_wanted = 0
    WHERE endpoint_no = ? AND id = ? AND worker_no = ? AND stop_wanted = 1`),
  progress: prepareOrdered(
    db,
    ["endpointNo", "jobId", "workerNo", "progress", "progressTextNo"],
    `INSERT INTO job_output (job_no, progress, progress_text)
    SELECT no, CAST(:progress AS TEXT), :progressTextNo FROM job WHERE endpoint_no = :endpointNo AND id = :jobId AND worker_no = :workerNo AND status = ${code.IN_PROGRESS}
    ON CONFLICT (job_no) DO UPDATE SET progress = excluded.progress, progress_text = excluded.progress_text`,
  ),
  giveBack: prepareNamed(
    db,
    ["retries", "no", "starts", "workerNo"],
    `UPDATE job SET status = ${code.IN_QUEUE}, taken_at = NULL, deadline_at = NULL, expires_at = ttl_end_at,
    retries = retries + :retries, excused = excused + 1 - :retries
    WHERE no = :no AND status = ${code.IN_PROGRESS} AND starts = :starts AND worker_no = :workerNo RETURNING ${settledColumns}`,
  ),
  end: prepareNamed(
    db,
    ["to", "now", "no", "from", "starts", "workerNo"],
    `UPDATE job SET status = :to, finished_at = :now, deadline_at = NULL, stop_wanted = (status = ${code.IN_PROGRESS} AND :to <> ${code.FAILED}),
    expires_at = min(ttl_end_at, :now + retention_ms)
    WHERE no = :no AND status = :from AND starts = :starts AND worker_no IS :workerNo RETURNING ${settledColumns}`,
  ),
  retry: prepareNamed(
    db,
    ["place", "now", "no", "status", "starts"],
    `UPDATE job SET status = ${code.IN_QUEUE}, place = :place, starts = 0, excused = 0, retries = 0, stop_wanted = 0, awaits_delivery = 0,
    queued_at = :now, taken_at = NULL, finished_at = NULL, expires_at = ttl_end_at
    WHERE no = :no AND status = :status AND starts = :starts AND expires_at > :now RETURNING ${settledColumns}`,
  ),
  begin: prepareNamed(
    db,
    ["beganAt", "beginsBy", "no", "starts", "workerNo"],
    `UPDATE job SET taken_at = :beganAt, deadline_at = :beginsBy + execution_timeout_ms
    WHERE no = :no AND status = ${code.IN_PROGRESS} AND starts = :starts AND worker_no = :workerNo`,
  ),
  supersede: db.prepare(
    "UPDATE delivery SET state = 'failed', next_at = NULL, held_by = NULL, ended_at = ? WHERE job_no = ? AND state = 'pending'",
  ),
  deliver: prepareOrdered(
    db,
    ["jobNo", "jobId", "endpointNo", "now"],
    `INSERT INTO delivery (job_no, job_id, endpoint_no, webhook_id, url, state, next_at)
    SELECT :jobNo, :jobId, :endpointNo, 'msg_' || lower(hex(randomblob(12))), webhook, 'pending', :now FROM job_input WHERE job_no = :jobNo`,
  ),
  clearOutput: db.prepare("DELETE FROM job_output WHERE job_no = ?"),
  clearStream: db.prepare("DELETE FROM stream WHERE job_no = ?"),
  clearChunks: db.prepare("DELETE FROM chunk WHERE job_no = ?"),
  trimChunks: db.prepare(trimChunks),
  note: prepareNamed(
    db,
    ["jobNo", "at", "event", "workerNo", "note"],
    `INSERT INTO job_event (job_no, n, at, event, worker_no, note)
    SELECT :jobNo, coalesce(max(n), 0) + 1, :at, :event, :workerNo, :note FROM job_event WHERE job_no = :jobNo`,
  ),
  setTtl: db.prepare(`UPDATE job SET ttl_end_at = ?1,
    expires_at = CASE WHEN finished_at IS NULL THEN ?1 ELSE min(?1, finished_at + retention_ms) END
    WHERE no = ?2 AND expires_at > ?3`),
  confirmStopped: db.prepare("UPDATE job SET stop_wanted = 0 WHERE no = ? AND worker_no = ? AND stop_wanted = 1"),
  cancelWaiting: prepareNamed(
    db,
    ["now", "endpointNo", "upToPlace", "limit"],
    `UPDATE job SET status = ${code.CANCELLED}, finished_at = :now, expires_at = min(ttl_end_at, :now + retention_ms)
    WHERE no IN (SELECT no FROM job WHERE endpoint_no = :endpointNo AND status = ${code.IN_QUEUE} AND place <= :upToPlace AND expires_at > :now
      ORDER BY place LIMIT :limit)
    RETURNING ${settledColumns}`,
  ),
  noteChange: prepareNamed(
    db,
    auditColumns,
    `INSERT INTO audit (${auditColumns.join(", ")}) VALUES (${auditColumns.map((column) => `:${column}`).join(", ")})`,
  ),
  expired: db.prepare(`SELECT no, id, endpoint_no, status, low_priority, keyed, finished_at >= expires_at AS vanished,
      has_webhook = 1 AND EXISTS (SELECT 1 FROM delivery d WHERE d.job_no = job.no AND d.state = 'pending') AS is_pending
    FROM job WHERE expires_at <= ?1 AND stop_wanted = 0 AND awaits_delivery = 0 ORDER BY expires_at LIMIT ?2`),
  awaitDelivery: db.prepare("UPDATE job SET awaits_delivery = 1 WHERE no = ?"),
  vanish: db.prepare(`UPDATE job SET status = ${code.CANCELLED}, finished_at = ?1, deadline_at = NULL, stop_wanted = 1
    WHERE no = ?2 AND status = ${code.IN_PROGRESS} RETURNING ${heldColumns}`),
  textBytes: db.prepare(`SELECT coalesce((SELECT ${bytes("i.body")} FROM job_input i WHERE i.job_no = ?1), 0)
    + coalesce((SELECT ${bytes("o.output")} FROM job_output o WHERE o.job_no = ?1), 0)
    + coalesce((SELECT sum(${bytes("c.output")}) FROM chunk c WHERE c.job_no = ?1 AND c."index" < coalesce(
      (SELECT "index" FROM chunk WHERE job_no = ?1 ORDER BY "index" LIMIT 1 OFFSET ${limits.chunksTrimmedAtOnce}), 1e18)), 0) AS bytes`),
  deleteJob: db.prepare("DELETE FROM job WHERE no = ?"),
  deleteInput: db.prepare("DELETE FROM job_input WHERE job_no = ?"),
  deleteEvents: db.prepare("DELETE FROM job_event WHERE job_no = ?"),
  deleteKeys: db.prepare(`DELETE FROM idempotency WHERE (endpoint_no, key_hash) IN
    (SELECT endpoint_no, key_hash FROM idempotency WHERE expires_at <= ?1 ORDER BY expires_at LIMIT ?2)`),
});
