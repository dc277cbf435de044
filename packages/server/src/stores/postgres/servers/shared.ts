import type { Selectable } from "kysely";
import type { HostFacts } from "../../../domain/hosts/host.js";
import { limits } from "../../../limits/index.js";
import type { Beat, BeatReply, Grant, Host, RevisedTable, Server, SharedStore } from "../../../store/index.js";
import type { Tables } from "../../tables/schema.js";
import { toWorker } from "../../tables/workers.js";
import { numbers, texts } from "../connection/arrays.js";
import type { Connections } from "../connection/connections.js";
import { statement } from "../connection/statement.js";
import { transaction } from "../connection/transaction.js";
import { folded, goneLane } from "../tallies.js";
import type { Lanes, Verb } from "../writer.js";
import { exclusively, freeChanges } from "./change-lock.js";

export const sharedSql = {
  /** Adds server and hosts again if the server was suspended for so long that they were deleted. */
  beat: statement(
    [
      "serverNo",
      "now",
      "report",
      "leases",
      "untilAt",
      "workerNos",
      "seenTimes",
      "busyTimes",
      "polledTimes",
      "slots",
      "seenAt",
      "serverId",
      "hostNos",
      "hostIds",
      "hostFacts",
    ],
    `
  WITH alive AS (
    INSERT INTO server (no, id, seen_at, report) VALUES (:serverNo::bigint, :serverId::text, :seenAt::bigint, :report::text)
    ON CONFLICT (no) DO UPDATE SET seen_at = excluded.seen_at, report = excluded.report),
  tended AS (
    INSERT INTO host (no, id, seen_at, facts)
    SELECT no, id, :seenAt, facts FROM unnest(:hostNos::bigint[], :hostIds::text[], :hostFacts::text[]) AS t (no, id, facts) ORDER BY no
    ON CONFLICT (no) DO UPDATE SET seen_at = excluded.seen_at, facts = excluded.facts),
  heard AS (
    UPDATE worker w SET seen_at = greatest(w.seen_at, s.seen_at), busy_at = greatest(w.busy_at, s.busy_at),
      polled_at = greatest(w.polled_at, s.polled_at), slots = greatest(w.slots, s.slots)
    FROM unnest(:workerNos::bigint[], :seenTimes::bigint[], :busyTimes::bigint[], :polledTimes::bigint[], :slots::bigint[])
      AS s (no, seen_at, busy_at, polled_at, slots) WHERE w.no = s.no),
  given AS (DELETE FROM lease WHERE holder = :serverNo AND name <> ALL (:leases::text[])),
  held AS (
    INSERT INTO lease AS l (name, holder, until_at) SELECT name, :serverNo, :untilAt FROM unnest(:leases::text[]) AS name ORDER BY name
    ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, until_at = excluded.until_at
      WHERE l.holder = :serverNo OR l.until_at <= :now::bigint
    RETURNING name)
  SELECT coalesce((SELECT array_agg(name) FROM held), '{}') AS leases`,
  ),
  servers: "SELECT no, report, seen_at FROM server",
  hosts: "SELECT no, facts, seen_at FROM host",
  hostFacts: "SELECT id, facts FROM host WHERE facts IS NOT NULL",
  leave: `
  WITH given AS (DELETE FROM lease WHERE holder = $1),
  emptied AS (UPDATE host SET seen_at = $2::bigint WHERE no = ANY ($3::bigint[]))
  UPDATE server SET seen_at = $2 WHERE no = $1`,
  /** A server or host that was never seen is only starting. */
  forgetSilent: statement(
    ["lane", "before"],
    `
  WITH gone AS MATERIALIZED (SELECT no FROM server WHERE seen_at > 0 AND seen_at <= :before::bigint),
  ${folded("gone")},
  forgotten AS (DELETE FROM server s USING gone g WHERE s.no = g.no AND s.seen_at <= :before),
  emptied AS (
    DELETE FROM host h WHERE h.seen_at > 0 AND h.seen_at <= :before
      AND NOT EXISTS (SELECT 1 FROM worker w WHERE w.host_no = h.no AND w.ended_at IS NULL))
  SELECT 1`,
  ),
  marks: `SELECT pg_snapshot_xmin(pg_current_snapshot())::text AS mark,
    (SELECT coalesce(json_object_agg(name, written_by), '{}') FROM revision)::text AS revisions`,
  // a row's xmin is its last writing transaction; a transaction in flight when the mark was made is not below the mark
  workersSince: `SELECT * FROM worker WHERE (ended_at IS NULL OR ended_at > $2) AND age(xmin) <= age($1::text::xid8::xid)`,
  changesSince: "SELECT DISTINCT name, no FROM changed_row WHERE written_by >= $1::text::xid8",
  forgetChanges: "DELETE FROM changed_row WHERE written_by < $1::text::xid8",
  lockNames: "SELECT pg_advisory_xact_lock(hashtextextended(name, 0)) FROM unnest($1::text[]) AS name",
  forgetGrants: "DELETE FROM rate_grant WHERE bucket <= $1 - $2::bigint",
  grant: statement(
    ["names", "at", "limits", "counts", "buckets"],
    `
  WITH asked AS MATERIALIZED (
    SELECT * FROM unnest(:names::text[], :at::bigint[], :limits::bigint[], :counts::bigint[]) AS a (name, bucket, most, count)),
  wanted AS MATERIALIZED (
    SELECT name, bucket, least(count, most - coalesce(
      (SELECT sum(granted) FROM rate_grant g WHERE g.name = a.name AND g.bucket > a.bucket - :buckets::bigint), 0)) AS n FROM asked a),
  given AS (
    INSERT INTO rate_grant AS g (name, bucket, granted) SELECT name, bucket, n FROM wanted WHERE n > 0 ORDER BY name
    ON CONFLICT (name, bucket) DO UPDATE SET granted = g.granted + excluded.granted)
  SELECT name, greatest(n, 0)::bigint AS granted FROM wanted`,
  ),
};

interface ServerRow {
  no: number;
  report: string | null;
  seen_at: number;
}
const toServer = (row: ServerRow): Server => ({
  ...(row.report === null ? {} : JSON.parse(row.report)),
  no: row.no,
  seenAt: row.seen_at,
});

interface HostRow {
  no: number;
  facts: string | null;
  seen_at: number;
}
/** The facts of a host that has not reported any yet: it has nothing to give to a worker. */
const unknownFacts: HostFacts = { location: undefined, gpus: [], gpusEnforced: true, cpus: 0, memoryMib: 0 };
const toHost = (row: HostRow): Host => ({
  ...unknownFacts,
  ...(row.facts === null ? {} : JSON.parse(row.facts)),
  no: row.no,
  seenAt: row.seen_at,
});

/** This server's identity on its database. */
interface Self {
  readonly no: number;
  readonly id: string;
}

const beatVerb: Verb<[self: Self, beat: Beat], BeatReply> = {
  callsMax: 1,
  async run({ connection }, [args]) {
    const [self, { report, hosts: tended, now, seenAt, leases, untilAt, signs: heard }] = args as [Self, Beat];
    // sorted, so that two servers that have heard of the same workers lock rows in the same order
    const signs = heard.toSorted((a, b) => a.workerNo - b.workerNo);
    const values = {
      serverNo: self.no,
      now,
      report: JSON.stringify(report),
      leases: texts(leases),
      untilAt,
      workerNos: numbers(signs.map((sign) => sign.workerNo)),
      seenTimes: numbers(signs.map((sign) => sign.seenAt)),
      busyTimes: numbers(signs.map((sign) => sign.busyAt)),
      polledTimes: numbers(signs.map((sign) => sign.polledAt)),
      slots: numbers(signs.map((sign) => sign.slots)),
      seenAt,
      serverId: self.id,
      hostNos: numbers(tended.map(({ no }) => no)),
      hostIds: texts(tended.map(({ id }) => id)),
      hostFacts: texts(tended.map(({ facts }) => JSON.stringify(facts))),
    };
    const [row] = await connection.query<{ leases: string[] }>(...sharedSql.beat.with(values));
    const servers = await connection.query<ServerRow>(sharedSql.servers, []);
    const hosts = await connection.query<HostRow>(sharedSql.hosts, []);
    return [{ leases: new Set(row?.leases), servers: servers.map(toServer), hosts: hosts.map(toHost) }];
  },
};

type Left = Parameters<SharedStore["leave"]>[0];

const leaveVerb: Verb<[serverNo: number, left: Left], void> = {
  callsMax: 1,
  async run({ connection }, [args]) {
    const [serverNo, { hostNos, seenAt }] = args as [number, Left];
    await connection.query(sharedSql.leave, [serverNo, seenAt, numbers(hostNos)]);
    return [undefined];
  },
};

const forgetSilentVerb: Verb<[before: number], void> = {
  callsMax: 1,
  async run({ connection }, [[before] = [0]]) {
    await connection.query(...sharedSql.forgetSilent.with({ lane: goneLane, before }));
    return [undefined];
  },
};

const forgetChangesVerb: Verb<[mark: string], void> = {
  callsMax: 1,
  async run({ connection }, [[mark] = ["0"]]) {
    await connection.query(sharedSql.forgetChanges, [mark]);
    return [undefined];
  },
};

const bucketMs = 100;
const buckets = limits.rateWindowMs / bucketMs;

/** In the order of their names, so that two servers that ask for the same ones lock them in the same order. */
const grantVerb: Verb<[Grant], number> = {
  callsMax: limits.grantsAtOnce,
  key: ({ name }) => name,
  inKeyOrder: true,
  async run({ connection }, calls) {
    const names = texts(calls.map(([{ name }]) => name));
    const values = {
      names,
      at: numbers(calls.map(([{ now }]) => Math.floor(now / bucketMs))),
      limits: numbers(calls.map(([{ limit }]) => limit)),
      counts: numbers(calls.map(([{ count }]) => count)),
      buckets,
    };
    const rows = await transaction(connection, async () => {
      await connection.query(sharedSql.lockNames, [names]);
      return connection.query<{ name: string; granted: number }>(...sharedSql.grant.with(values));
    });
    const granted = new Map(rows.map((row) => [row.name, row.granted]));
    return calls.map(([{ name }]) => granted.get(name) ?? 0);
  },
};

/** What a server's connections to the others' database are for. */
interface SharedConnections {
  /** For the lock of changes, and what servers tell each other. */
  readonly reads: Connections;
  readonly words: Lanes;
  /** Every request that counts against a limit waits for one of these. */
  readonly grants: Lanes;
}

/** What servers on one database exchange: leases, hosts, workers' signs of life, rates. */
export function postgresSharedStore({ reads, words, grants }: SharedConnections, self: Self): SharedStore {
  let forgetAt = 0;
  const forgetVerb: Verb<[bucket: number], void> = {
    callsMax: 1,
    async run({ connection }, [[bucket] = [0]]) {
      await connection.query(sharedSql.forgetGrants, [bucket, buckets]);
      return [undefined];
    },
  };
  return {
    serverNo: self.no,
    beat: (beat) => words.call(beatVerb, [self, beat]),
    leave: (left) => words.call(leaveVerb, [self.no, left]),
    forgetSilent: (before) => words.call(forgetSilentVerb, [before]),
    async grant(wanted) {
      if (wanted.now >= forgetAt) {
        forgetAt = wanted.now + limits.rateWindowMs;
        await grants.call(forgetVerb, [Math.floor(wanted.now / bucketMs)]);
      }
      return grants.call(grantVerb, [wanted]);
    },
    exclusively: (change) => exclusively(reads, self.no, change),
    freeChanges: (serverNos) => freeChanges(reads, serverNos),
    hostFacts: async () => {
      const rows = await reads.read<{ id: string; facts: string }>(sharedSql.hostFacts, []);
      return new Map(rows.map(({ id, facts }) => [id, JSON.parse(facts) as HostFacts]));
    },
    time: async () =>
      (
        await reads.read<{ at: number }>("SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS at", [])
      )[0]?.at ?? 0,
    marks: async () => {
      const [row] = await reads.read<{ mark: string; revisions: string }>(sharedSql.marks, []);
      return { mark: row!.mark, revisions: JSON.parse(row!.revisions) };
    },
    changesSince: async (mark) => {
      const rows = await reads.read<{ name: RevisedTable; no: number }>(sharedSql.changesSince, [mark]);
      const tables = Map.groupBy(rows, ({ name }) => name);
      return new Map([...tables].map(([name, changed]) => [name, changed.map(({ no }) => no)]));
    },
    forgetChanges: (mark) => words.call(forgetChangesVerb, [mark]),
    workersSince: async (mark, endedSince) =>
      (await reads.read<Selectable<Tables["worker"]>>(sharedSql.workersSince, [mark, endedSince])).map(toWorker),
  };
}
