import type { Selectable } from "kysely";
import type { WorkerStore } from "../../store.js";
import type { Tables } from "../tables/schema.js";
import { toWorker } from "../tables/workers.js";
import type { Lanes, Verb } from "./writer.js";

type Made = Parameters<WorkerStore["create"]>[0];
type Row = Selectable<Tables["worker"]>;

export const workerSql = {
  // the lease's row is locked: whoever takes it over meanwhile waits, and then reads the new worker
  create: `
  WITH owner AS MATERIALIZED (SELECT holder FROM lease WHERE name = 'scale' FOR SHARE)
  INSERT INTO worker (id, endpoint_no, version, host_no, wanted, created_at)
  SELECT $1::text, $2::bigint, $3::bigint, $4::bigint, 'running', $5::bigint
  WHERE NOT EXISTS (SELECT FROM owner WHERE holder <> $6::bigint)
  ON CONFLICT (id) DO UPDATE SET id = excluded.id
  RETURNING *`,
};

/**
 * Makes a worker's row, unless another server owns the scaler: what an owner decided that stood still, or whose word was
 * held up, comes too late.
 */
export function createWorker(words: Lanes, hostNo: number): WorkerStore["create"] {
  const verb: Verb<[made: Made], Row | undefined> = {
    callsMax: 1,
    async run({ connection }, [args]) {
      const [{ id, endpointNo, version, hostNo: on, createdAt }] = args as [Made];
      return connection.query<Row>(workerSql.create, [id, endpointNo, version, on, createdAt, hostNo]);
    },
  };
  return async (made) => {
    const row = await words.call(verb, [made]);
    if (!row) throw new Error("another server decides by now how many workers there are");
    return toWorker(row);
  };
}
