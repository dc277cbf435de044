import type { JobReader } from "../../store/index.js";
import { gathered } from "../tables/gathered.js";
import { anySize, code, heldColumns, joined, pageOf, toHeldJob, toJob, toPage } from "../tables/job-row.js";
import type { Database } from "./driver.js";
import { findSql, sqliteTextReader } from "./texts.js";

const listed = `j.endpoint_no = ?1 AND j.no < ?2 AND j.expires_at > ?3`;
const page = (index: string, where = "") => pageOf(`job j ${index} ${joined} WHERE ${listed}${where}`, "?4", "?5");

/** Reads of the queue, on the connection that only reads; large texts on one of their own where there is one. */
export function sqliteJobReader(db: Database, textDb?: Database): JobReader {
  const sql = {
    find: db.prepare(findSql),
    submission: db.prepare("SELECT octet_length(body) AS bytes, webhook, s3_config FROM job_input WHERE job_no = ?"),
    list: db.prepare(page("")),
    listStatus: db.prepare(page("", " AND j.status = ?6")),
    listTroubled: db.prepare(page("INDEXED BY job_troubled", " AND j.status >= 3 AND j.status = ?6")),
    held: db.prepare(`SELECT ${heldColumns} FROM job WHERE worker_no = ? AND (status = 1 OR stop_wanted = 1)`),
    overdue: db.prepare(
      `SELECT ${heldColumns} FROM job WHERE status = 1 AND deadline_at <= ? ORDER BY deadline_at LIMIT ?`,
    ),
    unstopped: db.prepare(`SELECT ${heldColumns} FROM job WHERE stop_wanted = 1 AND worker_no IN
      (SELECT no FROM worker WHERE ended_at IS NULL)`),
    orphaned: db.prepare(`SELECT ${heldColumns} FROM job INDEXED BY job_held WHERE (status = 1 OR stop_wanted = 1)
      AND worker_no NOT IN (SELECT no FROM worker WHERE ended_at IS NULL)`),
    nextDeadline: db.prepare("SELECT min(deadline_at) AS at FROM job WHERE status = 1"),
    nextExpiry: db.prepare("SELECT min(expires_at) AS at FROM job WHERE stop_wanted = 0"),
    nextPlace: db.prepare("SELECT value FROM counter WHERE name = 'next_place'"),
    position: db.prepare(`SELECT count(*) AS n FROM
      (SELECT 1 FROM job WHERE endpoint_no = ? AND status = 0 AND place < ? LIMIT ?)`),
  };
  // answers that leave in one turn wake their readers once: one by one they cost twice as much
  const find = gathered(async (asked: readonly [endpointNo: number, jobId: string, now: number][]) =>
    asked.map((key) => {
      const row = sql.find.get(...key);
      return row && toJob(row);
    }),
  );
  return {
    find: (...key) => find(key),
    ...sqliteTextReader(db, textDb),
    submission: async (jobNo) => {
      const row = sql.submission.get(jobNo);
      return row && { inputBytes: row.bytes, webhook: row.webhook ?? undefined, s3Config: row.s3_config ?? undefined };
    },
    list: async (endpointNo, { status, limit, bytesMax = anySize, beforeNo = Number.MAX_SAFE_INTEGER }, now) => {
      const values = [endpointNo, beforeNo, now, limit, bytesMax] as const;
      if (!status) return toPage(sql.list.all(...values));
      // an index of those that ended badly: past a million that went well
      const list = code[status] >= code.FAILED ? sql.listTroubled : sql.listStatus;
      return toPage(list.all(...values, code[status]));
    },
    heldBy: async (workerNo) => sql.held.all(workerNo).map(toHeldJob),
    overdue: async (now, limit) => sql.overdue.all(now, limit).map(toHeldJob),
    unstopped: async () => sql.unstopped.all().map(toHeldJob),
    orphaned: async () => sql.orphaned.all().map(toHeldJob),
    nextDeadline: async () => sql.nextDeadline.get().at ?? undefined,
    nextExpiry: async () => sql.nextExpiry.get().at ?? undefined,
    position: async (endpointNo, place, max) => sql.position.get(endpointNo, place, max).n,
    lastPlace: async () => sql.nextPlace.get().value - 1,
  };
}
