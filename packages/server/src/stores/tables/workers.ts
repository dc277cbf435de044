import type { Selectable, Updateable } from "kysely";
import type { Worker } from "../../domain/workers/worker.js";
import { transitionOf, type WorkerChange, type WorkerFact, wantedBy } from "../../domain/workers/worker-life.js";
import type { HostStore, WorkerStore } from "../../store/index.js";
import { rangeOf } from "./index-range.js";
import { maybe, type Runner, writeOne } from "./runner.js";
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
  pausedMs: row.paused_ms,
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

const json = (value: unknown) => (value === undefined ? null : JSON.stringify(value));

/** The column of each fact, and how its value is stored. */
const written = {
  secretHash: ["secret_hash"],
  handle: ["handle", json],
  workerUrl: ["worker_url"],
  hostNo: ["host_no"],
  resources: ["resources", json],
  address: ["address"],
  placedAt: ["placed_at"],
  imageAt: ["image_at"],
  madeAt: ["made_at"],
  startedAt: ["started_at"],
  readyAt: ["ready_at"],
  outputAt: ["output_at"],
  pausedAt: ["paused_at"],
  resumedAt: ["resumed_at"],
  pausedMs: ["paused_ms"],
  closedAt: ["closed_at"],
  stopAt: ["stop_at"],
  askedAt: ["asked_at"],
  killAt: ["kill_at"],
  endedAt: ["ended_at"],
  lastDoneAt: ["last_done_at"],
  hasPinged: ["has_pinged", Number],
  trouble: ["trouble", json],
  why: ["why"],
  exit: ["exit", json],
} as const satisfies Record<WorkerFact, readonly [column: keyof Tables["worker"], as?: (value: unknown) => unknown]>;

function toUpdate({ by, ...facts }: WorkerChange): Updateable<Tables["worker"]> {
  const wanted = wantedBy(by);
  const columns = Object.entries(facts).map(([fact, value]) => {
    const [column, as = (same: unknown) => same] = written[fact as WorkerFact];
    return [column, as(value)];
  });
  return Object.fromEntries(wanted === undefined ? columns : [...columns, ["wanted", wanted]]);
}

export function workerStore(runner: Runner): WorkerStore {
  const { sql } = runner;
  const change: WorkerStore["change"] = async (no, made) => {
    const { from, once } = transitionOf(made.by);
    const update = sql
      .updateTable("worker")
      .set(toUpdate(made))
      .where("no", "=", no)
      .where("ended_at", "is", null)
      .where("wanted", "in", from);
    const guarded = once === undefined ? update : update.where(written[once][0], "is", null);
    return (await writeOne<unknown>(runner, guarded.returning("no").compile())) !== undefined;
  };
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
    change,
    place: (no, found) => change(no, { by: "place", ...found }),
    all: async (endedSince) => {
      const query = sql
        .selectFrom("worker")
        .selectAll()
        .where((eb) => eb.or([eb("ended_at", "is", null), eb("ended_at", ">", endedSince)]));
      return (await runner.read(query.compile())).map(toWorker);
    },
    ofEndpoint: async (endpointNo, limit) => {
      const query = sql
        .selectFrom("worker")
        .selectAll()
        .where(rangeOf(["endpoint_no"], [endpointNo]));
      const sorted = query.orderBy("endpoint_no", "desc").orderBy("no", "desc");
      return (await runner.read(sorted.limit(limit).compile())).map(toWorker);
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
    forget: async (endedBefore, most) => {
      const ended = sql.selectFrom("worker").select("no").where("ended_at", "<=", endedBefore);
      const old = ended.orderBy("ended_at").limit(most);
      const [, rows] = await runner.write([
        sql.deleteFrom("job_secret").where("worker_no", "in", old).compile(),
        sql.deleteFrom("worker").where("no", "in", old).returning("no").compile(),
      ]);
      return rows?.length ?? 0;
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
