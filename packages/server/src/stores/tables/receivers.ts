import { sql as raw, type Selectable } from "kysely";
import type { Receiver, ReceiverStore } from "../../store/index.js";
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
    list: async ({ ownerNo, after, limit }) => {
      let query = sql.selectFrom("receiver").selectAll().where("owner_no", "=", ownerNo);
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
    paused: async () => {
      const query = sql.selectFrom("receiver").selectAll().where("paused_at", "is not", null);
      return (await runner.read(query.compile())).map(toReceiver);
    },
    holding: async (nos) => {
      if (nos.length === 0) return new Map();
      const query = raw<{ no: number; count: number }>`SELECT held_by AS no, count(*) AS count FROM delivery
        WHERE held_by IN (${raw.join(nos)}) GROUP BY held_by`;
      return new Map((await runner.read(query.compile(sql))).map(({ no, count }) => [no, count]));
    },
    hold: async (deliveryNo, receiverNo) => {
      const query = sql.updateTable("delivery").set({ held_by: receiverNo, next_at: null });
      await runner.write([query.where("no", "=", deliveryNo).where("state", "=", "pending").compile()]);
    },
    release: async (now, most) => {
      const paused = sql.selectFrom("receiver").select("no").where("paused_at", "is not", null);
      const held = sql.selectFrom("delivery").select("no").where("held_by", "is not", null);
      const due = await runner.read(held.where("held_by", "not in", paused).orderBy("no").limit(most).compile());
      if (due.length === 0) return 0;
      const nos = due.map(({ no }) => no);
      const query = sql.updateTable("delivery").set({ held_by: null, next_at: now }).where("no", "in", nos);
      // one that was paused again meanwhile is held again when its turn comes
      await runner.write([query.where("held_by", "is not", null).compile()]);
      return due.length;
    },
    forget: async (before, most) => {
      const old = sql
        .selectFrom("receiver")
        .select("no")
        .where("attempted_at", "<", before)
        .where("paused_at", "is", null)
        .limit(most);
      const [rows] = await runner.write([sql.deleteFrom("receiver").where("no", "in", old).returning("no").compile()]);
      return rows?.length ?? 0;
    },
  };
}
