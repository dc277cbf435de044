import type { CompiledQuery, Selectable } from "kysely";
import type { Action, AuditEntry } from "../../domain/access/audit.js";
import { limits } from "../../limits/index.js";
import { type AuditStore, auditing, type NewAuditEntry } from "../../store/audit.js";
import { rangeOf } from "./index-range.js";
import type { Runner } from "./runner.js";
import type { Tables } from "./schema.js";

const toEntry = (row: Selectable<Tables["audit"]>): AuditEntry => ({
  no: row.no,
  at: row.at,
  userNo: row.user_no,
  userId: row.user_id,
  keyId: row.key_id,
  keyPrefix: row.key_prefix,
  ...(row.address === null ? {} : { address: row.address }),
  ...(row.request_id === null ? {} : { requestId: row.request_id }),
  action: row.action as Action,
  resource: row.resource,
  ...(row.before === null ? {} : { before: JSON.parse(row.before) }),
  ...(row.after === null ? {} : { after: JSON.parse(row.after) }),
});

/** The row of an entry that is written. */
export const ofEntry = (entry: NewAuditEntry) => ({
  at: entry.at,
  user_no: entry.userNo,
  user_id: entry.userId,
  key_id: entry.keyId,
  key_prefix: entry.keyPrefix,
  address: entry.address ?? null,
  request_id: entry.requestId ?? null,
  action: entry.action,
  resource: entry.resource,
  before: entry.before === undefined ? null : JSON.stringify(entry.before),
  after: entry.after === undefined ? null : JSON.stringify(entry.after),
});

export type NewAuditRow = ReturnType<typeof ofEntry>;
export const auditColumns = [
  "at",
  "user_no",
  "user_id",
  "key_id",
  "key_prefix",
  "address",
  "request_id",
  "action",
  "resource",
  "before",
  "after",
] as const satisfies (keyof NewAuditRow)[];

/** A runner whose writes store what was noted of the changes that they make; a guarded write may store nothing. */
export function audited(runner: Runner): Runner {
  const insert = (entry: NewAuditEntry): CompiledQuery =>
    runner.sql.insertInto("audit").values(ofEntry(entry)).compile();
  return {
    ...runner,
    write: (queries, isGuarded) => runner.write([...queries, ...auditing.take().map(insert)], isGuarded),
  };
}

export function auditStore(runner: Runner): AuditStore {
  const { sql } = runner;
  return {
    list: async ({ userNo, userId, keyId, action, resource, sinceAt, untilAt, beforeNo, limit }) => {
      // by an index; the other conditions are looked for in what these select, so many at a time
      let these = sql.selectFrom("audit");
      if (userNo !== undefined) these = these.where("user_no", "=", userNo);
      if (resource !== undefined) these = these.where("resource", "=", resource);
      if (beforeNo !== undefined) these = these.where("no", "<", beforeNo);
      const newest = these.select("no").orderBy("no", "desc").limit(limits.auditRowsPerRead);
      const first = sql
        .selectFrom(newest.as("newest"))
        .select(({ fn }) => [fn.min("no").as("no"), fn.countAll().as("count")]);
      const [read] = await runner.read(first.compile());
      if (read === undefined || read.no === null) return { entries: [], lookedTo: undefined };
      const { no, count } = read;
      const by = userNo !== undefined ? { user_no: userNo } : resource !== undefined ? { resource } : {};
      const columns = Object.keys(by) as ("user_no" | "resource")[];
      const range = rangeOf(columns, Object.values(by), { fromNo: Number(no), beforeNo });
      let query = sql.selectFrom("audit").selectAll().where(range);
      for (const column of columns) query = query.orderBy(column, "desc");
      if (resource !== undefined) query = query.where("resource", "=", resource);
      if (userId !== undefined) query = query.where("user_id", "=", userId);
      if (keyId !== undefined) query = query.where("key_id", "=", keyId);
      if (action !== undefined) query = query.where("action", "=", action);
      if (sinceAt !== undefined) query = query.where("at", ">=", sinceAt);
      if (untilAt !== undefined) query = query.where("at", "<", untilAt);
      const entries = (await runner.read(query.orderBy("no", "desc").limit(limit).compile())).map(toEntry);
      const isAll = Number(count) < limits.auditRowsPerRead && entries.length < limit;
      return { entries, lookedTo: entries.length === limit ? entries.at(-1)?.no : isAll ? undefined : Number(no) };
    },
    trim: async (userNo, keep, most) => {
      const ofUser = sql.selectFrom("audit").select("no").where("user_no", "=", userNo);
      const old = ofUser.orderBy("no", "desc").limit(most).offset(keep);
      const [rows] = await runner.write([sql.deleteFrom("audit").where("no", "in", old).returning("no").compile()]);
      return rows?.length ?? 0;
    },
    forget: async (before, most) => {
      const old = sql.selectFrom("audit").select("no").where("at", "<", before).orderBy("at").limit(most);
      const [rows] = await runner.write([sql.deleteFrom("audit").where("no", "in", old).returning("no").compile()]);
      return rows?.length ?? 0;
    },
  };
}
