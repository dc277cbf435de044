import { FairLine } from "../../domain/fair-line.js";
import { limits } from "../../limits/index.js";
import type { JobQuery, JobReader, PositionQuery } from "../../store/index.js";
import { gathered } from "../tables/gathered.js";
import {
  anySize,
  type HappeningRow,
  type HeldRow,
  happenedSql,
  heldColumns,
  type JobRow,
  joined,
  type PageRow,
  recentSql,
  type SubmissionRow,
  type TimesRow,
  toHappening,
  toHeldJob,
  toJob,
  toPage,
  toSubmission,
  toTimes,
} from "../tables/job-row.js";
import { code, hasStatus, isAtWorker, isIndexed } from "../tables/job-state.js";
import { numbers, texts } from "./connection/arrays.js";
import type { Connections } from "./connection/connections.js";
import { statement } from "./connection/statement.js";
import { jobSql, postgresTextReader } from "./texts/texts.js";

const pageNames = ["endpointNo", "beforeNo", "now", "limit", "bytesMax"] as const;
const listed = "j.endpoint_no = :endpointNo AND j.no < :beforeNo AND j.expires_at > :now";
const page = (where = "") =>
  jobSql.pageOf(`job j ${joined} WHERE ${listed}${where}`, ":limit::bigint", ":bytesMax::bigint");

export const readerSql = {
  find: `SELECT a.n, ${jobSql.jobColumnsBounded} FROM unnest($1::bigint[], $2::text[], $3::bigint[]) WITH ORDINALITY AS a (endpoint_no, id, now, n)
    JOIN job j ON j.endpoint_no = a.endpoint_no AND j.id = a.id AND j.expires_at > a.now ${joined}`,
  submission: "SELECT octet_length(body) AS bytes, webhook, s3_config, trace FROM job_input WHERE job_no = $1",
  recent: recentSql("$1", "$2", "$3", "$4"),
  happened: happenedSql("$1", limits.happeningsShown),
  list: statement(pageNames, page()),
  listStatus: statement([...pageNames, "status"], page(" AND j.status = :status")),
  listFAILED: statement(pageNames, page(` AND ${hasStatus("FAILED", "j")}`)),
  listCANCELLED: statement(pageNames, page(` AND ${hasStatus("CANCELLED", "j")}`)),
  listTIMED_OUT: statement(pageNames, page(` AND ${hasStatus("TIMED_OUT", "j")}`)),
  held: `SELECT ${heldColumns} FROM job WHERE worker_no = ANY ($1::bigint[]) AND ${isAtWorker()}`,
  overdue: `SELECT ${heldColumns} FROM job WHERE status = ${code.IN_PROGRESS} AND deadline_at <= $1 ORDER BY deadline_at LIMIT $2`,
  unstopped: `SELECT ${heldColumns} FROM job WHERE ${isAtWorker()} AND stop_wanted = 1
    AND worker_no IN (SELECT no FROM worker WHERE ended_at IS NULL)`,
  orphaned: `SELECT ${heldColumns} FROM job j WHERE ${isAtWorker()} AND worker_no > 0
    AND NOT EXISTS (SELECT 1 FROM worker w WHERE w.no = j.worker_no AND w.ended_at IS NULL)`,
  nextDeadline: `SELECT min(deadline_at) AS at FROM job WHERE status = ${code.IN_PROGRESS}`,
  nextExpiry: "SELECT min(expires_at) AS at FROM job WHERE stop_wanted = 0 AND awaits_delivery = 0",
  position: `SELECT a.n, (SELECT count(*) FROM
      (SELECT 1 FROM job WHERE endpoint_no = a.endpoint_no AND status = ${code.IN_QUEUE} AND place < a.place LIMIT a.max) p) AS before
    FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) WITH ORDINALITY AS a (endpoint_no, place, max, n)`,
  /** The same for many at once: the first places of each endpoint are read once. */
  positions: `
  WITH asked AS MATERIALIZED (
    SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) WITH ORDINALITY AS a (endpoint_no, place, max, n)),
  heads AS MATERIALIZED (
    SELECT e.endpoint_no, e.max, (SELECT array_agg(p.place ORDER BY p.place) FROM
      (SELECT place FROM job WHERE endpoint_no = e.endpoint_no AND status = ${code.IN_QUEUE} ORDER BY place LIMIT e.max) p) AS places
    FROM (SELECT DISTINCT endpoint_no, max FROM asked) e)
  SELECT a.n, coalesce(width_bucket(a.place - 1, h.places), 0) AS before
  FROM asked a JOIN heads h USING (endpoint_no, max)`,
  lastPlace: "SELECT CASE WHEN is_called THEN last_value ELSE last_value - 1 END AS place FROM place",
};

/**
 * Reads of the queue: everything requested in one turn of the event loop is one query. Large texts are read on
 * connections of their own, and slices of pages in turn by owner.
 */
export function postgresJobReader(reads: Connections, textReads: Connections): JobReader {
  const find = gathered(async (asked: readonly JobQuery[]) => {
    const rows = await reads.read<JobRow & { n: number }>(readerSql.find, [
      numbers(asked.map(({ endpointNo }) => endpointNo)),
      texts(asked.map(({ jobId }) => jobId)),
      numbers(asked.map(({ now }) => now)),
    ]);
    const found = new Map(rows.map((row) => [row.n - 1, row]));
    return asked.map((_, n) => found.get(n));
  }, limits.foundPerTurn);
  const held = gathered(async (asked: readonly [workerNo: number][]) => {
    const rows = await reads.read<HeldRow>(readerSql.held, [numbers(asked.map(([workerNo]) => workerNo))]);
    return asked.map(([workerNo]) => rows.filter((row) => row.worker_no === workerNo).map(toHeldJob));
  });
  const unstopped = gathered(async (asked: readonly undefined[]) => {
    const jobs = (await reads.read<HeldRow>(readerSql.unstopped, [])).map(toHeldJob);
    return asked.map(() => jobs);
  });
  const position = gathered(async (asked: readonly PositionQuery[]) => {
    const text = asked.length === 1 ? readerSql.position : readerSql.positions;
    const rows = await reads.read<{ n: number; before: number }>(text, [
      numbers(asked.map(({ endpointNo }) => endpointNo)),
      numbers(asked.map(({ place }) => place)),
      numbers(asked.map(({ max }) => max)),
    ]);
    const before = new Map(rows.map((row) => [row.n - 1, row.before]));
    return asked.map((_, n) => before.get(n) ?? 0);
  });
  // other reads find a connection beside them
  const pages = new FairLine(limits.pageReadersMax);
  const at = async (text: string) => (await reads.read<{ at: number | null }>(text, []))[0]?.at ?? undefined;
  return {
    find: async (query) => {
      const row = await find(query);
      return row && toJob(row);
    },
    ...postgresTextReader(textReads),
    submission: async (jobNo) => {
      const [row] = await reads.read<SubmissionRow>(readerSql.submission, [jobNo]);
      return row && toSubmission(row);
    },
    recent: async ({ endpointNo, now, limit }) =>
      (await reads.read<TimesRow>(readerSql.recent, [endpointNo, now, limits.recentSearched, limit])).map(toTimes),
    happened: async (jobNo) => (await reads.read<HappeningRow>(readerSql.happened, [jobNo])).map(toHappening).reverse(),
    list: async ({
      endpointNo,
      ownerNo = 0,
      status,
      limit,
      bytesMax = anySize,
      beforeNo = Number.MAX_SAFE_INTEGER,
      now,
    }) => {
      const values = { endpointNo, beforeNo, now, limit, bytesMax };
      const read = (...statement: Parameters<Connections["read"]>) =>
        bytesMax > limits.requestsSliceBytes
          ? textReads.read<PageRow>(...statement)
          : pages.do(ownerNo, () => reads.read<PageRow>(...statement));
      if (!status) return toPage(await read(...readerSql.list.with(values)));
      if (isIndexed(status)) return toPage(await read(...readerSql[`list${status}`].with(values)));
      return toPage(await read(...readerSql.listStatus.with({ ...values, status: code[status] })));
    },
    heldBy: (workerNo) => held([workerNo]),
    overdue: async ({ now, limit }) => (await reads.read<HeldRow>(readerSql.overdue, [now, limit])).map(toHeldJob),
    unstopped: () => unstopped(undefined),
    orphaned: async () => (await reads.read<HeldRow>(readerSql.orphaned, [])).map(toHeldJob),
    nextDeadline: () => at(readerSql.nextDeadline),
    nextExpiry: () => at(readerSql.nextExpiry),
    position,
    lastPlace: async () => (await reads.read<{ place: number }>(readerSql.lastPlace, []))[0]?.place ?? 0,
  };
}
