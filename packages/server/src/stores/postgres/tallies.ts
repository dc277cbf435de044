import type { Tally, TallyReader } from "../../store/index.js";
import { gathered } from "../tables/gathered.js";
import { code, isAtWorker } from "../tables/job-state.js";
import { numbers } from "./connection/arrays.js";
import type { Connections } from "./connection/connections.js";

const counts = {
  waiting: "waiting",
  waitingNormal: "waiting_normal",
  running: "running",
  completed: "completed",
  failed: "failed",
  retried: "retried",
} as const satisfies Record<keyof Tally, string>;
const columns = Object.values(counts);
const sums = Object.fromEntries(Object.entries(counts).map(([name, column]) => [name, `sum(${column})`]));

/**
 * SQL fragment: adds up, by endpoint, how the rows of `source` change the counts, and writes that into the row of the
 * group's lane (`:lane`). `changes` are aggregate expressions; counts not named there stay the same.
 */
export function tallied(source: string, changes: Partial<Record<keyof Tally, string>>): string {
  const sums = (Object.keys(counts) as (keyof Tally)[]).map((name) => changes[name] ?? "0").join(", ");
  const added = columns.map((column) => `${column} = t.${column} + excluded.${column}`).join(", ");
  return `tallied AS (
    INSERT INTO tally AS t (endpoint_no, lane, ${columns.join(", ")})
    SELECT endpoint_no, :lane::bigint, ${sums} FROM ${source} GROUP BY endpoint_no
    ON CONFLICT (endpoint_no, lane) DO UPDATE SET ${added})`;
}

/** Each server has this many tally rows of its own, starting at its number times this. */
export const lanesPerServer = 100;
/** The tally row for all servers that are gone: no server has the number 0. */
export const goneLane = 0;

/**
 * SQL fragment: adds up the counts of the servers in `source` into one row (`:lane`). A concurrent write either came before
 * and is added up, or begins a new row.
 */
export const folded = (source: string): string => `folded AS (
    DELETE FROM tally t USING endpoint e, ${source} g WHERE t.endpoint_no = e.no
      AND t.lane >= g.no * ${lanesPerServer} AND t.lane < (g.no + 1) * ${lanesPerServer}
    RETURNING t.*),
  ${tallied("folded", sums)}`;

/**
 * Jobs that a worker holds, found only by their own index: by the status alone, a table that was never analyzed is
 * read through the whole index of deadlines.
 */
export const isHeld = (job: string): string => `${isAtWorker(job)} AND ${job}.status + 0 = ${code.IN_PROGRESS}`;

const none: Tally = { waiting: 0, waitingNormal: 0, running: 0, completed: 0, failed: 0, retried: 0 };
const added = Object.entries(counts)
  .map(([name, column]) => `sum(${column})::bigint AS "${name}"`)
  .join(", ");

export const tallySql = {
  tally: `SELECT endpoint_no, ${added} FROM tally WHERE endpoint_no = ANY ($1::bigint[]) GROUP BY endpoint_no`,
  waiting: "SELECT coalesce(sum(waiting), 0)::bigint AS waiting FROM tally WHERE endpoint_no = ANY ($1::bigint[])",
  oldest: `SELECT queued_at FROM job WHERE endpoint_no = $1 AND status = ${code.IN_QUEUE} AND low_priority = 0 ORDER BY place LIMIT 1`,
  holdings: `SELECT w.endpoint_no, w.no, (SELECT count(*) FROM job j WHERE j.worker_no = w.no AND ${isHeld("j")}) AS held
    FROM worker w WHERE w.endpoint_no = ANY ($1::bigint[]) AND w.ended_at IS NULL`,
  recount: `SELECT count(*) FILTER (WHERE status = ${code.IN_QUEUE}) AS waiting,
    count(*) FILTER (WHERE status = ${code.IN_QUEUE} AND low_priority = 0) AS "waitingNormal",
    count(*) FILTER (WHERE status = ${code.IN_PROGRESS}) AS running FROM job WHERE endpoint_no = $1`,
};

/** Reads of an endpoint's counts: the sum of the rows of all lanes. */
export function postgresTallyReader(reads: Connections): TallyReader {
  const tally = gathered(async (asked: readonly number[]): Promise<Tally[]> => {
    const rows = await reads.read<Tally & { endpoint_no: number }>(tallySql.tally, [numbers([...new Set(asked)])]);
    const found = new Map(rows.map(({ endpoint_no, ...counts }) => [endpoint_no, counts]));
    return asked.map((no) => found.get(no) ?? none);
  });
  // a list asks for the same endpoint once per waiting job
  const holdings = gathered(async (asked: readonly number[]) => {
    const rows = await reads.read<{ endpoint_no: number; no: number; held: number }>(tallySql.holdings, [
      numbers([...new Set(asked)]),
    ]);
    return asked.map((no) => new Map(rows.filter((row) => row.endpoint_no === no).map((row) => [row.no, row.held])));
  });
  return {
    tally,
    waiting: async (nos) =>
      (await reads.read<{ waiting: number }>(tallySql.waiting, [numbers([...nos])]))[0]?.waiting ?? 0,
    oldestWaiting: async (no) => (await reads.read<{ queued_at: number }>(tallySql.oldest, [no]))[0]?.queued_at,
    holdings,
    recount: async (no) => ({ ...(await tally(no)), ...(await reads.read<Tally>(tallySql.recount, [no]))[0] }),
  };
}
