import type { Selectable } from "kysely";
import type { Placement, WorkerStore } from "../../store/index.js";
import type { Tables } from "../tables/schema.js";
import { toWorker } from "../tables/workers.js";
import type { Lanes, Verb } from "./writer.js";

type Made = Parameters<WorkerStore["create"]>[0];
type Row = Selectable<Tables["worker"]>;

export const workerSql = {
  // locks the lease's row: a server that takes over the lease meanwhile waits, and then sees the new worker
  create: `
  WITH owner AS MATERIALIZED (SELECT holder FROM lease WHERE name = 'scale' FOR SHARE)
  INSERT INTO worker (id, endpoint_no, version, host_no, wanted, created_at, resources, throttled_at, why)
  SELECT $1::text, $2::bigint, $3::bigint, $4::bigint, 'running', $5::bigint, $7::text,
    CASE WHEN $8::text IS NOT NULL THEN $5::bigint END, $8::text
  WHERE NOT EXISTS (SELECT FROM owner WHERE holder <> $6::bigint)
  ON CONFLICT (id) DO UPDATE SET id = excluded.id
  RETURNING *`,
  place: `
  WITH owner AS MATERIALIZED (SELECT holder FROM lease WHERE name = 'scale' FOR SHARE)
  UPDATE worker SET host_no = $2::bigint, resources = $3::text, placed_at = $4::bigint
  WHERE no = $1::bigint AND placed_at IS NULL AND ended_at IS NULL AND wanted = 'running'
    AND NOT EXISTS (SELECT FROM owner WHERE holder <> $5::bigint)
  RETURNING no`,
};

/** Gives a waiting worker its place, unless another server owns the scaler. */
export function placeWorker(words: Lanes, serverNo: number): WorkerStore["place"] {
  const verb: Verb<[no: number, found: Placement], { no: number } | undefined> = {
    callsMax: 1,
    async run({ connection }, [args]) {
      const [no, found] = args as [number, Placement];
      const values = [no, found.hostNo, JSON.stringify(found.resources), found.placedAt, serverNo];
      return connection.query<{ no: number }>(workerSql.place, values);
    },
  };
  return async (no, found) => (await words.call(verb, [no, found])) !== undefined;
}

/**
 * Creates a worker's row, unless another server owns the scaler: decisions of an owner that was suspended or delayed
 * come too late.
 */
export function createWorker(words: Lanes, serverNo: number): WorkerStore["create"] {
  const verb: Verb<[made: Made], Row | undefined> = {
    callsMax: 1,
    async run({ connection }, [args]) {
      const [{ id, endpointNo, version, hostNo, createdAt, resources, throttled }] = args as [Made];
      const given = resources === undefined ? null : JSON.stringify(resources);
      const values = [id, endpointNo, version, hostNo, createdAt, serverNo, given, throttled ?? null];
      return connection.query<Row>(workerSql.create, values);
    },
  };
  return async (made) => {
    const row = await words.call(verb, [made]);
    if (!row) throw new Error("another server now owns the scaler");
    return toWorker(row);
  };
}
