import type { Selectable } from "kysely";
import type { Placement, WorkerStore } from "../../store/index.js";
import type { Tables } from "../tables/schema.js";
import { toWorker } from "../tables/workers.js";
import { statement } from "./connection/statement.js";
import type { Lanes, Verb } from "./writer.js";

type Made = Parameters<WorkerStore["create"]>[0];
type Row = Selectable<Tables["worker"]>;

export const workerSql = {
  // locks the lease's row: a server that takes over the lease meanwhile waits, and then sees the new worker
  create: statement(
    ["id", "endpointNo", "version", "hostNo", "createdAt", "serverNo", "resources", "throttled"],
    `
  WITH owner AS MATERIALIZED (SELECT holder FROM lease WHERE name = 'scale' FOR SHARE)
  INSERT INTO worker (id, endpoint_no, version, host_no, wanted, created_at, resources, throttled_at, why)
  SELECT :id::text, :endpointNo::bigint, :version::bigint, :hostNo::bigint, 'running', :createdAt::bigint, :resources::text,
    CASE WHEN :throttled::text IS NOT NULL THEN :createdAt::bigint END, :throttled::text
  WHERE NOT EXISTS (SELECT FROM owner WHERE holder <> :serverNo::bigint)
  ON CONFLICT (id) DO UPDATE SET id = excluded.id
  RETURNING *`,
  ),
  place: statement(
    ["no", "hostNo", "resources", "placedAt", "serverNo"],
    `
  WITH owner AS MATERIALIZED (SELECT holder FROM lease WHERE name = 'scale' FOR SHARE)
  UPDATE worker SET host_no = :hostNo::bigint, resources = :resources::text, placed_at = :placedAt::bigint
  WHERE no = :no::bigint AND placed_at IS NULL AND ended_at IS NULL AND wanted = 'running'
    AND NOT EXISTS (SELECT FROM owner WHERE holder <> :serverNo::bigint)
  RETURNING no`,
  ),
};

/** Gives a waiting worker its place, unless another server owns the scaler. */
export function placeWorker(words: Lanes, serverNo: number): WorkerStore["place"] {
  const verb: Verb<[no: number, found: Placement], { no: number } | undefined> = {
    callsMax: 1,
    async run({ connection }, [args]) {
      const [no, { hostNo, resources, placedAt }] = args as [number, Placement];
      const values = { no, hostNo, resources: JSON.stringify(resources), placedAt, serverNo };
      return connection.query<{ no: number }>(...workerSql.place.with(values));
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
      const [{ id, endpointNo, version, hostNo, createdAt, resources: given, throttled = null }] = args as [Made];
      const resources = given === undefined ? null : JSON.stringify(given);
      const values = { id, endpointNo, version, hostNo, createdAt, serverNo, resources, throttled };
      return connection.query<Row>(...workerSql.create.with(values));
    },
  };
  return async (made) => {
    const row = await words.call(verb, [made]);
    if (!row) throw new Error("another server now owns the scaler");
    return toWorker(row);
  };
}
