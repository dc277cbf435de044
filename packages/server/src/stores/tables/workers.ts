import type { Selectable, Updateable } from "kysely";
import type { Worker } from "../../domain/worker.js";
import type { HostStore, WorkerPatch, WorkerStore } from "../../store.js";
import { compact, maybe, type Runner, writeOne } from "./runner.js";
import type { Tables } from "./schema.js";

const parsed = (text: string | null) => (text === null ? undefined : JSON.parse(text));

export const toWorker = (row: Selectable<Tables["worker"]>): Worker => ({
  no: row.no,
  id: row.id,
  endpointNo: row.endpoint_no,
  version: row.version,
  hostNo: row.host_no,
  wanted: row.wanted,
  secretHash: maybe(row.secret_hash),
  handle: parsed(row.handle),
  workerUrl: maybe(row.worker_url),
  createdAt: row.created_at,
  startedAt: maybe(row.started_at),
  readyAt: maybe(row.ready_at),
  closedAt: maybe(row.closed_at),
  stopAt: maybe(row.stop_at),
  askedAt: maybe(row.asked_at),
  killAt: maybe(row.kill_at),
  endedAt: maybe(row.ended_at),
  lastDoneAt: maybe(row.last_done_at),
  hasPinged: row.has_pinged === 1,
  seenAt: row.seen_at,
  busyAt: row.busy_at,
  polledAt: row.polled_at,
  slots: row.slots,
  exit: parsed(row.exit),
});

const toUpdate = (patch: WorkerPatch): Updateable<Tables["worker"]> =>
  compact({
    wanted: patch.wanted,
    secret_hash: patch.secretHash,
    handle: patch.handle && JSON.stringify(patch.handle),
    worker_url: patch.workerUrl,
    started_at: patch.startedAt,
    ready_at: patch.readyAt,
    closed_at: patch.closedAt,
    stop_at: patch.stopAt,
    asked_at: patch.askedAt,
    kill_at: patch.killAt,
    ended_at: patch.endedAt,
    last_done_at: patch.lastDoneAt,
    has_pinged: patch.hasPinged === undefined ? undefined : Number(patch.hasPinged),
    exit: patch.exit && JSON.stringify(patch.exit),
  });

export function workerStore(runner: Runner): WorkerStore {
  const { sql } = runner;
  return {
    create: async ({ id, endpointNo, version, hostNo, createdAt }) =>
      toWorker(
        await writeOne(
          runner,
          sql
            .insertInto("worker")
            .values({
              id,
              endpoint_no: endpointNo,
              version,
              host_no: hostNo,
              wanted: "running",
              created_at: createdAt,
            })
            .returningAll()
            .compile(),
        ),
      ),
    save: async (no, patch) => {
      await runner.write([sql.updateTable("worker").set(toUpdate(patch)).where("no", "=", no).compile()]);
    },
    all: async (endedSince) => {
      const query = sql
        .selectFrom("worker")
        .selectAll()
        .where((eb) => eb.or([eb("ended_at", "is", null), eb("ended_at", ">", endedSince)]));
      return (await runner.read(query.compile())).map(toWorker);
    },
    forget: async (endedBefore) => {
      await runner.write([sql.deleteFrom("worker").where("ended_at", "<=", endedBefore).compile()]);
    },
  };
}

export function hostStore(runner: Runner): HostStore {
  const { sql } = runner;
  return {
    ensure: async (id, now) => {
      const query = sql
        .insertInto("host")
        .values({ id, seen_at: now })
        .onConflict((conflict) => conflict.column("id").doUpdateSet({ seen_at: now }))
        .returning("no");
      return (await writeOne(runner, query.compile())).no;
    },
  };
}
