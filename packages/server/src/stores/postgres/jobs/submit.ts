import type { NewJob, Submitted } from "../../../store/index.js";
import { code, statusOf } from "../../tables/job-state.js";
import { numbers, texts } from "../connection/arrays.js";
import type { Connection } from "../connection/connection.js";
import { statement } from "../connection/statement.js";
import { tallied } from "../tallies.js";
import type { Group, Verb } from "../writer.js";

export const submitSql = {
  /** Stores the jobs that may be stored, and returns their calls. The first place is the job's number for good. */
  submit: statement(
    [
      "lane",
      "endpointNos",
      "ids",
      "lowPriorities",
      "createdAts",
      "ttlEndAts",
      "executionTimeouts",
      "retentions",
      "webhookFlags",
      "keyHashes",
      "bodyHashes",
      "routes",
      "keyExpiries",
      "oldest",
      "bodies",
      "webhooks",
      "s3Configs",
      "policies",
      "traces",
    ],
    `
  WITH open AS MATERIALIZED (
    SELECT no FROM endpoint WHERE no = ANY (:endpointNos::bigint[]) AND deleted_at IS NULL ORDER BY no FOR SHARE),
  call AS MATERIALIZED (
    SELECT c.*, nextval('place') AS no FROM (
      SELECT * FROM unnest(:endpointNos::bigint[], :ids::text[], :lowPriorities::bigint[], :createdAts::bigint[], :ttlEndAts::bigint[], :executionTimeouts::bigint[], :retentions::bigint[],
          :webhookFlags::bigint[], :keyHashes::text[], :bodyHashes::text[], :routes::text[], :keyExpiries::bigint[]) WITH ORDINALITY
        AS c (endpoint_no, id, low_priority, created_at, ttl_end_at, execution_timeout_ms, retention_ms, has_webhook,
          key_hash, body_hash, route, key_expires_at, n)
      WHERE endpoint_no IN (SELECT no FROM open) ORDER BY n) c),
  keyed AS (
    INSERT INTO idempotency AS i (endpoint_no, key_hash, body_hash, route, job_no, job_id, last_status, expires_at)
    SELECT endpoint_no, key_hash, body_hash, route, no, id, ${code.IN_QUEUE}, key_expires_at FROM call
    WHERE key_hash IS NOT NULL ORDER BY endpoint_no, key_hash
    ON CONFLICT (endpoint_no, key_hash) DO UPDATE SET body_hash = excluded.body_hash, route = excluded.route,
      job_no = excluded.job_no, job_id = excluded.job_id, last_status = ${code.IN_QUEUE}, expires_at = excluded.expires_at
      WHERE i.expires_at <= :oldest::bigint
    RETURNING job_no),
  made AS (
    INSERT INTO job (no, endpoint_no, id, place, status, low_priority, created_at, queued_at, ttl_end_at, expires_at,
      execution_timeout_ms, retention_ms, has_webhook, keyed)
    SELECT no, endpoint_no, id, no, ${code.IN_QUEUE}, low_priority, created_at, created_at, ttl_end_at, ttl_end_at,
      execution_timeout_ms, retention_ms, has_webhook, (key_hash IS NOT NULL)::int
    FROM call WHERE key_hash IS NULL OR no IN (SELECT job_no FROM keyed)
    RETURNING no, endpoint_no, low_priority),
  inputs AS (
    INSERT INTO job_input (job_no, body, webhook, s3_config, policy, trace)
    SELECT c.no, b.body, b.webhook, b.s3_config, b.policy, b.trace FROM call c
    JOIN unnest(:bodies::text[], :webhooks::text[], :s3Configs::text[], :policies::text[], :traces::text[])
      WITH ORDINALITY AS b (body, webhook, s3_config, policy, trace, n)
      ON b.n = c.n
    WHERE c.no IN (SELECT no FROM made)),
  ${tallied("made", { waiting: "count(*)", waitingNormal: "count(*) FILTER (WHERE low_priority = 0)" })}
  SELECT c.n FROM call c WHERE c.no IN (SELECT no FROM made)`,
  ),

  known: `SELECT c.n, i.job_id, i.body_hash, i.route,
      coalesce(CASE WHEN j.finished_at >= j.expires_at THEN NULL ELSE j.status END, i.last_status) AS status
    FROM unnest($1::bigint[], $2::text[]) WITH ORDINALITY AS c (endpoint_no, key_hash, n)
    JOIN idempotency i ON i.endpoint_no = c.endpoint_no AND i.key_hash = c.key_hash AND i.expires_at > $3
    LEFT JOIN job j ON j.endpoint_no = i.endpoint_no AND j.no = i.job_no AND j.id = i.job_id`,

  stored: "SELECT 1 FROM job WHERE endpoint_no = $1 AND id = $2",
};

/**
 * The time by which a group's idempotency keys are judged, the same in every statement: a key that expires while the
 * group is in flight still stands for its first job.
 */
const oldest = (jobs: readonly NewJob[]): number => Math.min(...jobs.map((job) => job.createdAt));

async function submitAll({ connection, lane }: Group, jobs: readonly NewJob[]): Promise<Submitted[]> {
  const of = <T>(field: (job: NewJob) => T) => jobs.map(field);
  const values = {
    lane,
    endpointNos: numbers(of((job) => job.endpointNo)),
    ids: texts(of((job) => job.id)),
    lowPriorities: numbers(of((job) => job.lowPriority)),
    createdAts: numbers(of((job) => job.createdAt)),
    ttlEndAts: numbers(of((job) => job.ttlEndAt)),
    executionTimeouts: numbers(of((job) => job.executionTimeoutMs)),
    retentions: numbers(of((job) => job.retentionMs)),
    webhookFlags: numbers(of((job) => job.webhook !== undefined)),
    keyHashes: texts(of((job) => job.idempotency?.keyHash)),
    bodyHashes: texts(of((job) => job.idempotency?.bodyHash)),
    routes: texts(of((job) => job.idempotency?.route)),
    keyExpiries: numbers(of((job) => job.idempotency?.expiresAt)),
    oldest: oldest(jobs),
    bodies: texts(of((job) => job.body)),
    webhooks: texts(of((job) => job.webhook)),
    s3Configs: texts(of((job) => job.s3Config)),
    policies: texts(of((job) => job.policy)),
    traces: texts(of((job) => job.trace)),
  };
  const rows = await connection.query<{ n: number }>(...submitSql.submit.with(values));
  const made = new Set(rows.map(({ n }) => n - 1));
  const known = made.size === jobs.length ? new Map() : await knownKeys(connection, jobs);
  return jobs.map((_, n) => (made.has(n) ? { kind: "submitted" } : (known.get(n) ?? { kind: "closed" })));
}

async function knownKeys(connection: Connection, jobs: readonly NewJob[]): Promise<Map<number, Submitted>> {
  const rows = await connection.query<{ n: number; job_id: string; body_hash: string; route: string; status: number }>(
    submitSql.known,
    [numbers(jobs.map((job) => job.endpointNo)), texts(jobs.map((job) => job.idempotency?.keyHash)), oldest(jobs)],
  );
  return new Map(
    rows.map(({ n, job_id: jobId, body_hash: bodyHash, route, status }) => [
      n - 1,
      { kind: "known", record: { jobId, bodyHash, route, lastStatus: statusOf(status) } },
    ]),
  );
}

/** Whether a call whose connection broke was stored. Ids are never reused, so a job with this id is the call's job. */
async function isStored(connection: Connection, { endpointNo, id }: NewJob): Promise<boolean> {
  return (await connection.query(submitSql.stored, [endpointNo, id])).length > 0;
}

/** Stores jobs; if the idempotency key is known, returns the first job instead. */
export const submitVerb: Verb<[NewJob], Submitted> = {
  key: ({ endpointNo, id, idempotency }) => (idempotency ? `${endpointNo}/${idempotency.keyHash}` : id),
  async run(group, calls) {
    const jobs = calls.map(([job]) => job);
    if (group.again && (await isStored(group.connection, jobs[0] as NewJob))) return [{ kind: "submitted" }];
    return submitAll(group, jobs);
  },
};
