import { realTime } from "../../../clock.js";
import { limits } from "../../../limits/index.js";
import type { Ask, Take, Taken, TakenJob } from "../../../store/index.js";
import { type TakenRow, toTakenJob } from "../../tables/job-row.js";
import { code } from "../../tables/job-state.js";
import { numbers } from "../connection/arrays.js";
import type { Connection } from "../connection/connection.js";
import { isLost } from "../connection/failures.js";
import { statement } from "../connection/statement.js";
import { isHeld, tallied } from "../tallies.js";
import { jobSql } from "../texts/texts.js";
import type { Group, Verb } from "../writer.js";

const handed = `t.no, t.id, t.place, t.starts, t.worker_no, t.queued_at, t.taken_at, t.deadline_at,
  ${jobSql.boundedBody}, i.webhook, i.s3_config, i.policy, i.trace`;
const waiting = `endpoint_no = :endpointNo::bigint AND status = ${code.IN_QUEUE} AND expires_at > :now::bigint`;

export const takeSql = {
  /**
   * Gives waiting jobs to the workers of `asks`, in their order: first jobs that were given back (their places are
   * before the floor), then from the floor on, up to the job whose input reaches `:room` bytes; sizes are read without the
   * inputs. Each row has only what its worker is handed; `asked`, `found`, `there` and `first` come in a row of their
   * own. `first` becomes the next floor. It includes jobs that another take has locked at the moment, since that take
   * may leave some of them.
   */
  take: statement(
    ["lane", "endpointNo", "now", "floor", "workerNos", "counts", "room"],
    `
  WITH slot AS MATERIALIZED (
    SELECT a.worker_no, row_number() OVER (ORDER BY a.n) AS slot
    FROM unnest(:workerNos::bigint[], :counts::bigint[]) WITH ORDINALITY AS a (worker_no, count, n)
    JOIN worker w ON w.no = a.worker_no CROSS JOIN generate_series(1, a.count)
    WHERE w.wanted = 'running' AND w.ended_at IS NULL
      AND (SELECT e.deleted_at IS NULL FROM endpoint e WHERE e.no = w.endpoint_no)),
  back AS MATERIALIZED (
    SELECT no, place FROM job WHERE ${waiting} AND starts > 0 AND place < :floor::bigint
    ORDER BY place LIMIT (SELECT count(*) FROM slot) FOR UPDATE SKIP LOCKED),
  front AS MATERIALIZED (
    SELECT no, place FROM job WHERE ${waiting} AND place >= :floor::bigint
    ORDER BY place LIMIT (SELECT count(*) FROM slot) - (SELECT count(*) FROM back) FOR UPDATE SKIP LOCKED),
  pick AS (
    SELECT p.no, row_number() OVER (ORDER BY place) AS slot,
      sum(octet_length(i.body)) OVER (ORDER BY place ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
    FROM (SELECT * FROM back UNION ALL SELECT * FROM front) p JOIN job_input i ON i.job_no = p.no),
  taken AS (
    UPDATE job j SET status = ${code.IN_PROGRESS}, worker_no = s.worker_no, starts = starts + 1, taken_at = :now,
      deadline_at = :now + execution_timeout_ms
    FROM pick p JOIN slot s ON s.slot = p.slot
    WHERE j.endpoint_no = :endpointNo AND j.no = p.no AND coalesce(p.before, 0) < :room::bigint
    RETURNING j.no, j.endpoint_no, j.id, j.place, j.starts, j.low_priority, j.worker_no, j.queued_at, j.taken_at, j.deadline_at),
  ${tallied("taken", {
    waiting: "-count(*)",
    waitingNormal: "-count(*) FILTER (WHERE low_priority = 0)",
    running: "count(*)",
  })}
  SELECT ${handed}, NULL::bigint AS asked, NULL::bigint AS found, NULL::bigint AS there, NULL::bigint AS first
  FROM taken t JOIN job_input i ON i.job_no = t.no
  UNION ALL
  SELECT NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
    (SELECT count(*) FROM slot), (SELECT count(*) FROM back) + (SELECT count(*) FROM front),
    (SELECT sum(waiting) FROM tally WHERE endpoint_no = :endpointNo), (SELECT place FROM job WHERE ${waiting} AND place >= :floor::bigint ORDER BY place LIMIT 1)`,
  ),

  /** The jobs that a take whose connection broke has already given to these workers. */
  given: `SELECT ${handed} FROM job t JOIN job_input i ON i.job_no = t.no
    WHERE t.worker_no = ANY ($1::bigint[]) AND ${isHeld("t")} AND t.taken_at = $2 AND t.endpoint_no = $3 ORDER BY t.place`,
};

/**
 * Where the search for waiting jobs begins: with an old snapshot open, dead entries pile up at the head of the index.
 */
interface Floor {
  place: number;
  foundAt: number;
}

interface Turn {
  readonly jobs: TakenJob[];
  readonly asked: number;
  /** Whether it found more than it had room for. */
  readonly isCut: boolean;
  /** How many jobs were waiting when it began. */
  readonly there: number;
  readonly first: number | undefined;
}

interface Summary {
  asked: number | null;
  found: number | null;
  there: number | null;
  first: number | null;
}

async function turn(
  { connection, lane }: Group,
  { endpointNo, asks, now, floor, room }: Take & { readonly floor: number; readonly room: number },
): Promise<Turn> {
  const workerNos = numbers(asks.map((ask) => ask.workerNo));
  const counts = numbers(asks.map((ask) => ask.count));
  const values = takeSql.take.with({ lane, endpointNo, now, floor, workerNos, counts, room });
  const rows = await connection.query<TakenRow & Partial<Summary>>(...values);
  const summary = rows.find((row) => row.no === null);
  const jobs = rows.filter((row) => row.no !== null).sort((a, b) => a.place - b.place);
  return {
    jobs: jobs.map(toTakenJob),
    asked: summary?.asked ?? 0,
    isCut: jobs.length < (summary?.found ?? 0),
    there: summary?.there ?? 0,
    first: summary?.first ?? undefined,
  };
}

async function givenAlready(connection: Connection, { endpointNo, asks, now }: Take) {
  const workers = numbers(asks.map((ask) => ask.workerNo));
  return (await connection.query<TakenRow>(takeSql.given, [workers, now, endpointNo])).map(toTakenJob);
}

/**
 * Hands out waiting jobs. Every 10 s one take searches from the very beginning; the first job it finds is the next
 * floor.
 */
export function takeVerb(): Verb<[Take], Taken> {
  const floors = new Map<number, Floor>();
  /**
   * The jobs that each endpoint's takes have returned in the last millisecond: these were not lost with a connection.
   */
  const answered = new Map<number, { at: number; nos: Set<number> }>();

  async function look(group: Group, take: Take): Promise<Taken> {
    const { endpointNo, asks } = take;
    const floor = floors.get(endpointNo);
    const isFresh = floor !== undefined && realTime.monotonicMs() - floor.foundAt < limits.floorMs;
    const found = await turn(group, { ...take, floor: isFresh ? floor.place : 0, room: limits.takeBytesMax });
    const isShort = !found.isCut && found.jobs.length < found.asked;
    if (isFresh && isShort && found.there > found.jobs.length) {
      floors.delete(endpointNo);
      const room = limits.takeBytesMax - bytesOf(found.jobs);
      const rest = await turn(group, { ...take, asks: left(asks, found.jobs), floor: 0, room }).catch((error) => {
        if (isLost(error) || found.jobs.length === 0) throw error;
        return undefined; // jobs taken first are committed and must be handed out
      });
      const jobs = [...found.jobs, ...(rest?.jobs ?? [])];
      return { jobs, dry: rest !== undefined && !rest.isCut && jobs.length < found.asked };
    }
    if (!isFresh && found.first !== undefined) {
      floors.set(endpointNo, { place: found.first, foundAt: realTime.monotonicMs() });
    }
    return { jobs: found.jobs, dry: isShort };
  }

  return {
    callsMax: 1,
    async run(group, [args]) {
      const [take] = args as [Take];
      const { endpointNo, now } = take;
      const before = answered.get(endpointNo);
      const already = before?.at === now ? before.nos : new Set<number>();
      const given = group.again ? await givenAlready(group.connection, take) : [];
      const lost = given.filter((job) => !already.has(job.no));
      const taken = lost.length > 0 ? { jobs: lost, dry: false } : await look(group, take);
      for (const { no } of taken.jobs) already.add(no);
      answered.set(endpointNo, { at: now, nos: already });
      return [taken];
    },
  };
}

const bytesOf = (jobs: readonly TakenJob[]) => jobs.reduce((sum, { inputBytes }) => sum + inputBytes, 0);

/** What is still wanted after these jobs were given. */
function left(asks: readonly Ask[], given: readonly TakenJob[]): Ask[] {
  return asks.map(({ workerNo, count }) => ({
    workerNo,
    count: count - given.filter((job) => job.workerNo === workerNo).length,
  }));
}
