import { limits } from "../../../limits/index.js";
import type { DueBatch, Swept } from "../../../store/index.js";
import { type HeldRow, heldColumns, toHeldJob } from "../../tables/job-row.js";
import { code } from "../../tables/job-state.js";
import { numbers } from "../connection/arrays.js";
import type { Connection } from "../connection/connection.js";
import { statement } from "../connection/statement.js";
import { transaction } from "../connection/transaction.js";
import { tallied } from "../tallies.js";
import { trimChunks } from "../texts/chunks.js";
import type { Group, Verb } from "../writer.js";

interface ExpiredRow {
  no: number;
  endpoint_no: number;
  status: number;
  keyed: number;
  has_webhook: number;
  vanished: boolean | null;
}

const pairs = "unnest(:endpointNos::bigint[], :nos::bigint[]) AS p (endpoint_no, no)";

export const sweepSql = {
  expired: `SELECT no, endpoint_no, status, keyed, has_webhook, finished_at >= expires_at AS vanished FROM job
    WHERE expires_at <= $1 AND stop_wanted = 0 AND awaits_delivery = 0 ORDER BY expires_at LIMIT $2 FOR UPDATE SKIP LOCKED`,
  /**
   * For locked jobs. The deliveries are locked too: a delivery that ends meanwhile is either seen here, or finds that
   * its job is waiting for it.
   */
  pending: "SELECT job_no AS no FROM delivery WHERE job_no = ANY ($1::bigint[]) AND state = 'pending' FOR UPDATE",
  awaitDelivery: `UPDATE job j SET awaits_delivery = 1
    FROM unnest($1::bigint[], $2::bigint[]) AS p (endpoint_no, no) WHERE j.endpoint_no = p.endpoint_no AND j.no = p.no`,
  keepStatus: `UPDATE idempotency i SET last_status = p.status
    FROM unnest($1::bigint[], $2::bigint[]) AS p (no, status) WHERE i.job_no = p.no`,
  /** Running jobs are first marked to be stopped. */
  vanish: statement(
    ["lane", "endpointNos", "nos", "now"],
    `
  WITH gone AS (
    UPDATE job j SET status = ${code.CANCELLED}, finished_at = :now::bigint, deadline_at = NULL, stop_wanted = 1
    FROM ${pairs} WHERE j.endpoint_no = p.endpoint_no AND j.no = p.no AND j.status = ${code.IN_PROGRESS}
    RETURNING j.*),
  ${tallied("gone", { running: "-count(*)" })}
  SELECT ${heldColumns} FROM gone`,
  ),
  drop: statement(
    ["lane", "endpointNos", "nos"],
    `
  WITH dropped AS (
    DELETE FROM job j USING ${pairs} WHERE j.endpoint_no = p.endpoint_no AND j.no = p.no
    RETURNING j.no, j.endpoint_no, j.status, j.low_priority),
  inputs AS (DELETE FROM job_input WHERE job_no = ANY (:nos)),
  outputs AS (DELETE FROM job_output WHERE job_no = ANY (:nos)),
  events AS (DELETE FROM job_event WHERE job_no = ANY (:nos)),
  streams AS (DELETE FROM stream WHERE job_no = ANY (:nos)),
  chunks AS (DELETE FROM chunk WHERE job_no = ANY (:nos)),
  ${tallied("dropped", {
    waiting: `-count(*) FILTER (WHERE status = ${code.IN_QUEUE})`,
    waitingNormal: `-count(*) FILTER (WHERE status = ${code.IN_QUEUE} AND low_priority = 0)`,
  })}
  SELECT count(*) FROM dropped`,
  ),
  dropKeys: `DELETE FROM idempotency WHERE (endpoint_no, key_hash) IN
    (SELECT endpoint_no, key_hash FROM idempotency WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2
      FOR UPDATE SKIP LOCKED) RETURNING 1 AS dropped`,
};

async function sweep({ connection, lane }: Group, { now, limit }: DueBatch): Promise<Swept> {
  const found = await connection.query<ExpiredRow>(sweepSql.expired, [now, limit]);
  const rows = await withoutPending(connection, found);
  const kept = rows.filter((row) => row.keyed === 1 && !row.vanished);
  if (kept.length > 0) {
    const values = [numbers(kept.map((row) => row.no)), numbers(kept.map((row) => row.status))];
    await connection.query(sweepSql.keepStatus, values);
  }
  const keys = (some: readonly ExpiredRow[]) => ({
    lane,
    endpointNos: numbers(some.map((row) => row.endpoint_no)),
    nos: numbers(some.map((row) => row.no)),
  });
  const running = rows.filter((row) => row.status === code.IN_PROGRESS);
  const over = rows.filter((row) => row.status !== code.IN_PROGRESS);
  const stopped =
    running.length > 0 ? await connection.query<HeldRow>(...sweepSql.vanish.with({ ...keys(running), now })) : [];
  const chunks = over.length === 0 ? 0 : await trimChunks(connection, keys(over), limits.chunksTrimmedAtOnce);
  // the jobs of this batch stay, hidden, until all their chunks are gone
  if (chunks === limits.chunksTrimmedAtOnce) return { deleted: 0, stopped: stopped.map(toHeldJob), more: true };
  if (over.length > 0) await connection.query(...sweepSql.drop.with(keys(over)));
  const keysDropped = (await connection.query(sweepSql.dropKeys, [now, limit])).length;
  return { deleted: over.length, stopped: stopped.map(toHeldJob), more: [found.length, keysDropped].includes(limit) };
}

/** Jobs with undelivered webhooks are swept after the delivery. */
async function withoutPending(connection: Connection, rows: ExpiredRow[]): Promise<ExpiredRow[]> {
  const nos = rows.filter((row) => row.has_webhook === 1).map(({ no }) => no);
  if (nos.length === 0) return rows;
  const pending = new Set(
    (await connection.query<{ no: number }>(sweepSql.pending, [numbers(nos)])).map(({ no }) => no),
  );
  const waiting = rows.filter(({ no }) => pending.has(no));
  if (waiting.length > 0) {
    const keys = [numbers(waiting.map((row) => row.endpoint_no)), numbers(waiting.map((row) => row.no))];
    await connection.query(sweepSql.awaitDelivery, keys);
  }
  return rows.filter(({ no }) => !pending.has(no));
}

/** Deletes expired jobs, one batch at a time. */
export const sweepVerb: Verb<[DueBatch], Swept> = {
  callsMax: 1,
  async run(group, [args]) {
    const [batch] = args as [DueBatch];
    return [await transaction(group.connection, () => sweep(group, batch))];
  },
};
