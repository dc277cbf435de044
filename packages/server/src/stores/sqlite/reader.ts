import { limits } from "../../limits/index.js";
import type { JobQuery, JobReader, PageQuery, PositionQuery } from "../../store/index.js";
import { turns } from "../../turns.js";
import { gathered } from "../tables/gathered.js";
import {
  anySize,
  happenedSql,
  heldColumns,
  joined,
  recentSql,
  toHappening,
  toHeldJob,
  toJob,
  toPage,
  toSubmission,
  toTimes,
} from "../tables/job-row.js";
import { code, hasStatus, isAtWorker, isIndexed, statusIndexes } from "../tables/job-state.js";
import type { Database } from "./driver.js";
import { prepareNamed } from "./statement.js";
import { jobSql, textsInPieces } from "./texts/stored-texts.js";
import { findSql, sqliteTextReader } from "./texts/texts.js";

const listed = "j.endpoint_no = :endpointNo AND j.no < :beforeNo AND j.no >= :from AND j.expires_at > :now";
const page = (where: string) => jobSql.pageOf(`job j ${joined} WHERE ${where}`, ":limit", ":bytesMax");

/** Reads of the queue, on the read-only connection; large texts on a connection of their own, if there is one. */
export function sqliteJobReader(db: Database, textDb?: Database): JobReader {
  /** A window of this many jobs of an endpoint by an index, and the jobs of one status within it. */
  const search = (index: string, where: string) => {
    const jobs = `SELECT no FROM job INDEXED BY ${index} WHERE endpoint_no = :endpointNo AND no < :before AND ${where}`;
    return {
      window: prepareNamed(
        db,
        ["endpointNo", "before", "rows"],
        `SELECT min(no) AS no, count(*) AS count FROM (${jobs} ORDER BY no DESC LIMIT :rows)`,
      ),
      within: prepareNamed(
        db,
        ["endpointNo", "before", "from", "status", "now", "left"],
        `${jobs} AND no >= :from AND status = :status AND expires_at > :now ORDER BY no DESC LIMIT :left`,
      ),
    };
  };
  const sql = {
    find: db.prepare(findSql),
    submission: db.prepare(
      `SELECT ${textsInPieces.bytes("i.body")} AS bytes, webhook, s3_config, trace FROM job_input i WHERE job_no = ?`,
    ),
    recent: prepareNamed(
      db,
      ["endpointNo", "now", "rows", "limit"],
      recentSql(":endpointNo", ":now", ":rows", ":limit"),
    ),
    happened: db.prepare(happenedSql("?", limits.happeningsShown)),
    list: prepareNamed(db, ["endpointNo", "beforeNo", "from", "now", "limit", "bytesMax"], page(listed)),
    // a job's status may have changed since the search found it
    listed: prepareNamed(
      db,
      ["nos", "beforeNo", "now", "limit", "bytesMax", "status"],
      page(
        "j.no IN (SELECT value FROM json_each(:nos)) AND j.no < :beforeNo AND j.expires_at > :now AND j.status = :status",
      ),
    ),
    all: search("job_listed", "true"),
    FAILED: search(statusIndexes.FAILED, hasStatus("FAILED")),
    CANCELLED: search(statusIndexes.CANCELLED, hasStatus("CANCELLED")),
    TIMED_OUT: search(statusIndexes.TIMED_OUT, hasStatus("TIMED_OUT")),
    held: db.prepare(`SELECT ${heldColumns} FROM job WHERE worker_no = ? AND ${isAtWorker()}`),
    overdue: db.prepare(
      `SELECT ${heldColumns} FROM job WHERE status = ${code.IN_PROGRESS} AND deadline_at <= ? ORDER BY deadline_at LIMIT ?`,
    ),
    unstopped: db.prepare(`SELECT ${heldColumns} FROM job WHERE stop_wanted = 1 AND worker_no IN
      (SELECT no FROM worker WHERE ended_at IS NULL)`),
    orphaned: db.prepare(`SELECT ${heldColumns} FROM job INDEXED BY job_held WHERE ${isAtWorker()}
      AND worker_no NOT IN (SELECT no FROM worker WHERE ended_at IS NULL)`),
    nextDeadline: db.prepare(`SELECT min(deadline_at) AS at FROM job WHERE status = ${code.IN_PROGRESS}`),
    nextExpiry: db.prepare("SELECT min(expires_at) AS at FROM job WHERE stop_wanted = 0 AND awaits_delivery = 0"),
    nextPlace: db.prepare("SELECT value FROM counter WHERE name = 'next_place'"),
    position: db.prepare(`SELECT count(*) AS n FROM
      (SELECT 1 FROM job WHERE endpoint_no = ? AND status = ${code.IN_QUEUE} AND place < ? LIMIT ?)`),
    firstPlaces: db.prepare(
      `SELECT place FROM job WHERE endpoint_no = ? AND status = ${code.IN_QUEUE} ORDER BY place LIMIT ?`,
    ),
  };
  // replies sent in one turn wake their readers once: one by one they cost twice as much
  const find = gathered(
    async (asked: readonly JobQuery[]) =>
      asked.map(({ endpointNo, jobId, now }) => {
        const row = sql.find.get(endpointNo, jobId, now);
        return row && toJob(row);
      }),
    limits.foundPerTurn,
  );
  // a page requests the positions of all its jobs in one turn
  const position = gathered(async (asked: readonly PositionQuery[]) => {
    const [first, ...others] = asked;
    if (first === undefined) return [];
    if (others.length === 0) return [sql.position.get(first.endpointNo, first.place, first.max).n as number];
    const firstPlaces = new Map<string, number[]>();
    return asked.map(({ endpointNo, place, max }) => {
      const key = `${endpointNo} ${max}`;
      const places =
        firstPlaces.get(key) ?? sql.firstPlaces.all(endpointNo, max).map((row: { place: number }) => row.place);
      firstPlaces.set(key, places);
      const at = places.findIndex((each: number) => each >= place);
      return at < 0 ? places.length : at;
    });
  });

  type Search = PageQuery & Required<Pick<PageQuery, "status" | "beforeNo">>;
  /**
   * The numbers of the newest jobs of a status, one more than `limit`. Matches can be far apart, so each turn searches
   * one window.
   */
  async function numbersOf({ endpointNo, status, limit, beforeNo, gone, now }: Search) {
    const { window, within } = isIndexed(status) ? sql[status] : sql.all;
    const found: number[] = [];
    for (let before = beforeNo; ; ) {
      const next = await turns.run(["searches"], (): number | undefined => {
        if (gone?.aborted) return undefined;
        const { no, count: size } = window.get({ endpointNo, before, rows: limits.searchedRows });
        const left = limit + 1 - found.length;
        const rows = size === 0 ? [] : within.all({ endpointNo, before, from: no, status: code[status], now, left });
        found.push(...rows.map((row: { no: number }) => row.no));
        return size < limits.searchedRows ? undefined : no;
      });
      if (next === undefined || found.length > limit) return found;
      before = next;
    }
  }

  /**
   * A page of jobs in any state. Expired jobs that are still stored can be any number: each turn passes one window of
   * them, of which the first is no larger than a page.
   */
  async function listAll({
    endpointNo,
    limit,
    bytesMax = anySize,
    beforeNo = Number.MAX_SAFE_INTEGER,
    gone,
    now,
  }: PageQuery) {
    for (let before = beforeNo, rows = limit + 1; ; rows = limits.searchedRows) {
      const next = await turns.run(["pages"], () => {
        if (gone?.aborted) return { jobs: [], more: false };
        const { no: from, count: size } = sql.all.window.get({ endpointNo, before, rows });
        const page = toPage(
          size === 0 ? [] : sql.list.all({ endpointNo, beforeNo: before, from, now, limit, bytesMax }),
        );
        const isLast = size < rows;
        return page.jobs.length > 0 || isLast ? { ...page, more: page.more || !isLast } : (from as number);
      });
      if (typeof next !== "number") return next;
      before = next;
    }
  }

  return {
    find,
    ...sqliteTextReader(db, textDb),
    submission: async (jobNo) => {
      const row = sql.submission.get(jobNo);
      return row && toSubmission(row);
    },
    recent: (query) =>
      turns.run(["pages"], () => sql.recent.all({ ...query, rows: limits.recentSearched }).map(toTimes)),
    happened: async (jobNo) => sql.happened.all(jobNo).map(toHappening).reverse(),
    list: async (query) => {
      const { status, limit, bytesMax = anySize, beforeNo = Number.MAX_SAFE_INTEGER, now } = query;
      if (status === undefined) return listAll(query);
      const rest = { now, limit, bytesMax, status: code[status] };
      for (let before = beforeNo; ; ) {
        const numbers = await numbersOf({ ...query, status, beforeNo: before });
        const nos = JSON.stringify(numbers);
        const page = await turns.run(["pages"], () => toPage(sql.listed.all({ nos, beforeNo: before, ...rest })));
        const last = numbers.at(-1);
        const more = page.more || numbers.length > limit;
        if (page.jobs.length > 0 || last === undefined || !more) return { ...page, more };
        before = last; // the status of all of them has changed meanwhile
      }
    },
    heldBy: (workerNo) => turns.run(["held"], () => sql.held.all(workerNo).map(toHeldJob)),
    overdue: async ({ now, limit }) => sql.overdue.all(now, limit).map(toHeldJob),
    unstopped: async () => sql.unstopped.all().map(toHeldJob),
    orphaned: async () => sql.orphaned.all().map(toHeldJob),
    nextDeadline: async () => sql.nextDeadline.get().at ?? undefined,
    nextExpiry: async () => sql.nextExpiry.get().at ?? undefined,
    position,
    lastPlace: async () => sql.nextPlace.get().value - 1,
  };
}
