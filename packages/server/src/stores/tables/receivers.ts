import { sql as raw, type Selectable } from "kysely";
import type { Receiver, ReceiverState, ReceiverStore } from "../../store/index.js";
import { maybe, type Runner } from "./runner.js";
import type { Tables } from "./schema.js";

const toReceiver = (row: Selectable<Tables["receiver"]>): Receiver => ({
  no: row.no,
  id: row.id,
  ownerNo: row.owner_no,
  origin: row.origin,
  failures: row.failures,
  failingAt: maybe(row.failing_at),
  error: maybe(row.error),
  attemptedAt: row.attempted_at,
  pausedAt: maybe(row.paused_at),
});

function isIn(state: ReceiverState, failing: number) {
  if (state === "paused") return raw<boolean>`paused_at IS NOT NULL`;
  // with IS NULL, a planner may choose the index of receivers that are not paused, which has those of all owners
  return raw<boolean>`coalesce(paused_at, 0) = 0 AND failures ${raw.raw(state === "failing" ? ">=" : "<")} ${failing}`;
}

export function receiverStore(runner: Runner): ReceiverStore {
  const { sql } = runner;
  return {
    note: async ({ id, ownerNo, origin, at, error }, most) => {
      const isFailed = error === undefined ? 0 : 1;
      const failingAt = isFailed ? at : null;
      const [rows] = await runner.write([
        raw<{ failures: number }>`INSERT INTO receiver (id, owner_no, origin, failures, failing_at, error, attempted_at)
          SELECT ${id}, CAST(${ownerNo} AS bigint), ${origin}, CAST(${isFailed} AS bigint), CAST(${failingAt} AS bigint),
            ${error ?? null}, CAST(${at} AS bigint)
          WHERE (SELECT count(*) FROM receiver WHERE owner_no = ${ownerNo}) < ${most}
            OR EXISTS (SELECT 1 FROM receiver WHERE owner_no = ${ownerNo} AND origin = ${origin})
          ON CONFLICT (owner_no, origin) DO UPDATE SET attempted_at = excluded.attempted_at,
            failures = CASE WHEN excluded.failures = 0 THEN 0 ELSE receiver.failures + 1 END,
            failing_at = CASE WHEN excluded.failures = 0 THEN NULL ELSE coalesce(receiver.failing_at, excluded.failing_at) END,
            error = CASE WHEN excluded.failures = 0 THEN NULL ELSE excluded.error END
          RETURNING failures`.compile(sql),
      ]);
      return (rows?.[0] as { failures: number } | undefined)?.failures ?? 0;
    },
    list: async ({ ownerNo, after, state, failing, limit }) => {
      let query = sql.selectFrom("receiver").selectAll().where("owner_no", "=", ownerNo);
      if (state !== undefined) query = query.where(isIn(state, failing));
      if (after !== undefined) query = query.where("origin", ">", after);
      return (await runner.read(query.orderBy("owner_no").orderBy("origin").limit(limit).compile())).map(toReceiver);
    },
    find: async (id) => {
      const [row] = await runner.read(sql.selectFrom("receiver").selectAll().where("id", "=", id).compile());
      return row && toReceiver(row);
    },
    pause: async (no, pausedAt) => {
      await runner.write([
        sql
          .updateTable("receiver")
          .set({ paused_at: pausedAt ?? null })
          .where("no", "=", no)
          .compile(),
      ]);
    },
    paused: async (targets) => {
      if (targets.length === 0) return [];
      const wanted = raw.join(targets.map(({ ownerNo, origin }) => raw`(CAST(${ownerNo} AS bigint), ${origin})`));
      const query = raw<Selectable<Tables["receiver"]>>`WITH wanted (owner_no, origin) AS (VALUES ${wanted})
        SELECT receiver.* FROM wanted JOIN receiver USING (owner_no, origin) WHERE paused_at IS NOT NULL`;
      return (await runner.read(query.compile(sql))).map(toReceiver);
    },
    holding: async (nos) => {
      if (nos.length === 0) return new Map();
      const query = raw<{ no: number; count: number }>`SELECT held_by AS no, count(*) AS count FROM delivery
        WHERE held_by IN (${raw.join(nos)}) GROUP BY held_by`;
      return new Map((await runner.read(query.compile(sql))).map(({ no, count }) => [no, count]));
    },
    holdingOf: async (ownerNos) => {
      if (ownerNos.length === 0) return new Map();
      const query = raw<{ owner: number; count: number; bytes: number }>`
        SELECT r.owner_no AS owner, count(*) AS count, sum(d.held_bytes) AS bytes
        FROM receiver r JOIN delivery d ON d.held_by = r.no
        WHERE r.owner_no IN (${raw.join(ownerNos)}) AND r.holds = 1 GROUP BY r.owner_no`;
      return new Map((await runner.read(query.compile(sql))).map(({ owner, ...sum }) => [owner, sum]));
    },
    hold: async (held) => {
      if (held.length === 0) return;
      const rows = held.map(
        ({ deliveryNo, receiverNo, bytes }) =>
          raw`(CAST(${deliveryNo} AS bigint), CAST(${receiverNo} AS bigint), CAST(${bytes} AS bigint))`,
      );
      const receiverNos = [...new Set(held.map(({ receiverNo }) => receiverNo))];
      await runner.write([
        sql.updateTable("receiver").set({ holds: 1 }).where("no", "in", receiverNos).compile(),
        raw`WITH held (no, receiver, bytes) AS (VALUES ${raw.join(rows)})
          UPDATE delivery SET held_by = held.receiver, held_bytes = held.bytes, next_at = NULL FROM held
          WHERE delivery.no = held.no AND delivery.state = 'pending'`.compile(sql),
      ]);
    },
    release: async (now, most) => {
      const resumed = sql.selectFrom("receiver").select("no").where("holds", "=", raw.lit(1));
      const [next] = await runner.read(resumed.where("paused_at", "is", null).orderBy("no").limit(1).compile());
      if (!next) return false;
      const held = sql.selectFrom("delivery").select("no").where("held_by", "=", next.no);
      const due = await runner.read(held.orderBy("no").limit(most).compile());
      const nos = due.map(({ no }) => no);
      const freed = sql.updateTable("delivery").set({ held_by: null, next_at: now }).where("held_by", "=", next.no);
      const noted = (holds: number) => sql.updateTable("receiver").set({ holds }).where("no", "=", next.no);
      await runner.write([
        noted(0).compile(), // first: what another server holds meanwhile is seen below, or notes itself afterwards
        // one that was paused again meanwhile is held again when its turn comes
        ...(nos.length > 0 ? [freed.where("no", "in", nos).compile()] : []),
        noted(1)
          .where((eb) => eb.exists(held))
          .compile(),
      ]);
      return true;
    },
    forget: async (before, most) => {
      const old = sql
        .selectFrom("receiver")
        .select("no")
        .where("attempted_at", "<", before)
        .where("paused_at", "is", null)
        .where("holds", "=", 0)
        .limit(most);
      const [rows] = await runner.write([sql.deleteFrom("receiver").where("no", "in", old).returning("no").compile()]);
      return rows?.length ?? 0;
    },
  };
}
