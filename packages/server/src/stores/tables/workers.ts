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
  resources: parsed(row.resources),
  address: maybe(row.address),
  createdAt: row.created_at,
  throttledAt: maybe(row.throttled_at),
  placedAt: maybe(row.placed_at),
  imageAt: maybe(row.image_at),
  madeAt: maybe(row.made_at),
  startedAt: maybe(row.started_at),
  readyAt: maybe(row.ready_at),
  outputAt: maybe(row.output_at),
  pausedAt: maybe(row.paused_at),
  resumedAt: maybe(row.resumed_at),
  closedAt: maybe(row.closed_at),
  stopAt: maybe(row.stop_at),
  askedAt: maybe(row.asked_at),
  killAt: maybe(row.kill_at),
  endedAt: maybe(row.ended_at),
  lastDoneAt: maybe(row.last_done_at),
  hasPinged: row.has_pinged === 1,
  trouble: parsed(row.trouble),
  why: maybe(row.why),
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
    host_no: patch.hostNo,
    resources: patch.resources && JSON.stringify(patch.resources),
    address: patch.address,
    throttled_at: patch.throttledAt,
    placed_at: patch.placedAt,
    image_at: patch.imageAt,
    made_at: patch.madeAt,
    started_at: patch.startedAt,
    ready_at: patch.readyAt,
    output_at: patch.outputAt,
    paused_at: patch.pausedAt,
    resumed_at: patch.resumedAt,
    closed_at: patch.closedAt,
    stop_at: patch.stopAt,
    asked_at: patch.askedAt,
    kill_at: patch.killAt,
    ended_at: patch.endedAt,
    last_done_at: patch.lastDoneAt,
    has_pinged: patch.hasPinged === undefined ? undefined : Number(patch.hasPinged),
    trouble: patch.trouble && JSON.stringify(patch.trouble),
    why: patch.why,
    exit: patch.exit && JSON.stringify(patch.exit),
  });

export function workerStore(runner: Runner): WorkerStore {
  const { sql } = runner;
  return {
    create: async ({ id, endpointNo, version, hostNo, createdAt, resources, throttled }) =>
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
              resources: resources === undefined ? null : JSON.stringify(resources),
              throttled_at: throttled === undefined ? null : createdAt,
              why: throttled ?? null,
            })
            .returningAll()
            .compile(),
        ),
      ),
    save: async (no, patch, from) => {
      const update = sql.updateTable("worker").set(toUpdate(patch)).where("no", "=", no);
      const guarded = from === undefined ? update : update.where("ended_at", "is", null).where("wanted", "in", from);
      return (await writeOne<unknown>(runner, guarded.returning("no").compile())) !== undefined;
    },
    place: async (no, { hostNo, resources, placedAt }) => {
      const query = sql
        .updateTable("worker")
        .set({ host_no: hostNo, resources: JSON.stringify(resources), placed_at: placedAt })
        .where("no", "=", no)
        .where("placed_at", "is", null)
        .where("ended_at", "is", null)
        .where("wanted", "=", "running")
        .returning("no");
      return (await writeOne<unknown>(runner, query.compile())) !== undefined;
    },
    all: async (endedSince) => {
      const query = sql
        .selectFrom("worker")
        .selectAll()
        .where((eb) => eb.or([eb("ended_at", "is", null), eb("ended_at", ">", endedSince)]));
      return (await runner.read(query.compile())).map(toWorker);
    },
    ofEndpoint: async (endpointNo, limit) => {
      const query = sql.selectFrom("worker").selectAll().where("endpoint_no", "=", endpointNo);
      return (await runner.read(query.orderBy("no", "desc").limit(limit).compile())).map(toWorker);
    },
    find: async (id) => {
      const [row] = await runner.read(sql.selectFrom("worker").selectAll().where("id", "=", id).compile());
      return row && toWorker(row);
    },
    existing: async (ids) => {
      const query = sql
        .selectFrom("worker")
        .select("id")
        .where("id", "in", ids)
        .where("ended_at", "is", null)
        .where("secret_hash", "is not", null);
      return (await runner.read(query.compile())).map(({ id }) => id);
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
