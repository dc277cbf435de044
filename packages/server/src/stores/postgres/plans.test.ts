import pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startPostgres, type TestPostgres } from "../../../../../scripts/postgres.mjs";
import { makeDatabase } from "../contracts/postgres-fixture.js";
import { connectionConfig } from "./connection/connections.js";
import { coolStatements } from "./cool-statements-fixture.js";
import { changeSql } from "./jobs/change.js";
import { settleSql } from "./jobs/settle.js";
import { submitSql } from "./jobs/submit.js";
import { sweepSql } from "./jobs/sweep.js";
import { takeSql } from "./jobs/take.js";
import { openPostgres } from "./open.js";
import { readerSql } from "./reader.js";
import { sharedSql } from "./servers/shared.js";
import { tallySql } from "./tallies.js";
import { chunkSql } from "./texts/chunks.js";

const rows = 100_000;

/** Half of the jobs wait, some run, some are over; 20 endpoints of 10 workers each, and one in ten jobs has a delivery. */
const load = `
  INSERT INTO endpoint (id, owner_no, settings, version, created_at)
  SELECT 'endpoint' || n, 1, '{}', 1, 1 FROM generate_series(1, 20) n;
  INSERT INTO worker (id, endpoint_no, version, host_no, wanted, created_at)
  SELECT 'worker' || n, n % 20 + 1, 1, 1, 'running', 1 FROM generate_series(1, 200) n;
  INSERT INTO worker (id, endpoint_no, version, host_no, wanted, created_at, ended_at)
  SELECT 'ended' || n, n % 20 + 1, 1, 1, 'stopped', 1, n FROM generate_series(1, 5000) n;
  INSERT INTO job_secret (worker_no, value) SELECT no, 'sealed' FROM worker, generate_series(1, 5);
  INSERT INTO job (no, endpoint_no, id, place, status, low_priority, worker_no, created_at, queued_at, taken_at,
    finished_at, deadline_at, ttl_end_at, expires_at, execution_timeout_ms, retention_ms, has_webhook, keyed)
  SELECT n, n % 20 + 1, 'job-' || n, n, CASE WHEN n % 2 = 0 THEN 0 WHEN n % 101 = 0 THEN 1 ELSE n / 2 % 4 + 2 END,
    (n % 7 = 0)::int, n % 200 + 1, n, n, n, CASE WHEN n % 2 = 1 AND n % 101 > 0 THEN n END, n + 600000, n + 86400000,
    n + 86400000, 600000, 1800000, (n % 3 = 0)::int, (n % 11 = 0)::int
  FROM generate_series(1, ${rows}) n;
  INSERT INTO job_input (job_no, body) SELECT no, '{}' FROM job;
  INSERT INTO job_output (job_no, output) SELECT no, '{}' FROM job WHERE status > 1;
  INSERT INTO job_event SELECT no, 1, 1, 'retry' FROM job WHERE no % 10 = 0;
  INSERT INTO stream SELECT no, 2, 0, 1 FROM job WHERE no % 10 = 0;
  INSERT INTO chunk SELECT no, k, 1, '1' FROM job, generate_series(0, 1) k WHERE no % 10 = 0;
  INSERT INTO idempotency SELECT endpoint_no, 'key-' || no, 'body', 'run', no, id, 0, no + 86400000 FROM job WHERE keyed = 1;
  INSERT INTO delivery (job_no, job_id, endpoint_no, webhook_id, url, state, next_at, ended_at)
  SELECT no, id, endpoint_no, 'msg', 'http://a', CASE WHEN no % 100 = 0 THEN 'pending' ELSE 'delivered' END, no,
    CASE WHEN no % 100 > 0 THEN no END FROM job WHERE no % 10 = 0;
  INSERT INTO receiver (id, owner_no, origin, failures, attempted_at, paused_at, holds)
  SELECT 'receiver' || n, n % 200 + 1, 'https://' || n, n % 7, n, CASE WHEN n % 10 = 0 THEN n END, (n % 10 = 0)::int
  FROM generate_series(1, 5000) n;
  UPDATE delivery SET held_by = job_no / 100, held_bytes = 10, next_at = NULL WHERE job_no % 1000 = 0;
  INSERT INTO attempt SELECT no, 1, 1, 200, NULL, 1 FROM delivery;
  INSERT INTO decision (endpoint_no, from_at, until_at, times, inputs, outcome, reason)
  SELECT n % 20 + 1, n, n, 1, '{}', 'none', 'none' FROM generate_series(1, 5000) n;
  INSERT INTO tally SELECT e, l, 1, 1, 1, 1, 1, 1 FROM generate_series(1, 20) e, generate_series(1, 600) l;
  INSERT INTO rate_grant SELECT 'name' || n, n, 1 FROM generate_series(1, 5000) n;
`;
const setNumbers = `SELECT setval(pg_get_serial_sequence(c.relname, 'no'), 1000000) FROM pg_class c
  WHERE relname IN ('endpoint', 'worker', 'delivery', 'receiver', 'decision')`;

interface Node {
  readonly "Node Type": string;
  readonly "Relation Name"?: string;
  readonly "Index Name"?: string;
  readonly "Index Cond"?: string;
  readonly "Join Type"?: string;
  readonly Plans?: readonly Node[];
}

let server: TestPostgres;
/** One database whose tables were analyzed, and one whose tables never were. */
const clients = new Map<string, pg.Client>();

beforeAll(async () => {
  server = await startPostgres({ settings: { fsync: "off", autovacuum: "off", max_wal_size: "'2GB'" } });
  for (const name of ["analyzed", "never_analyzed"]) {
    const url = await makeDatabase(server, name);
    await (await openPostgres({ url, serverId: "host", onBack: () => {} })).close();
    const client = new pg.Client({ ...connectionConfig(url), statement_timeout: 0, query_timeout: 0 });
    await client.connect();
    clients.set(name, client);
    await client.query(load);
    await client.query(setNumbers);
    if (name === "analyzed") await client.query("VACUUM ANALYZE");
  }
});
afterAll(async () => {
  for (const client of clients.values()) await client.end();
  await server.end();
});

let statements = 0;
/** The plan that our connections keep for a statement. PostgreSQL 15 explains a generic plan only by EXECUTE. */
async function planOf(client: pg.Client, text: string): Promise<Node[]> {
  const name = `p${++statements}`;
  await client.query(`PREPARE ${name} AS ${text}`);
  const count = Math.max(0, ...[...text.matchAll(/\$(\d+)/g)].map(([, n]) => Number(n)));
  const values = count === 0 ? "" : `(${Array(count).fill("NULL").join(", ")})`;
  const { rows } = await client.query(`EXPLAIN (FORMAT JSON) EXECUTE ${name}${values}`);
  await client.query(`DEALLOCATE ${name}`);
  return flat(rows[0]["QUERY PLAN"][0].Plan);
}
const flat = (node: Node): Node[] => [node, ...(node.Plans ?? []).flatMap(flat)];

/** Tables with few rows, such as servers, hosts and leases. */
const small = /^(place|schema|server|host|user|api_key|template|volume|registry_auth|endpoint|lease|revision)$/;
/** Indexes of live rows: a full scan of each is short. */
const short = /^(job_held|worker_endpoint|delivery_due|delivery_of|receiver_resumed|endpoint_pkey)$/;

/** Clean-up that runs now and then: it may look past other rows. */
const rare = /^delete from "attempt"/;

/** The parts of a plan that scan a whole table or a whole index. */
const scans = (plan: readonly Node[]): string[] =>
  plan
    .filter((node) => {
      const table = node["Relation Name"];
      if (node["Node Type"] === "Seq Scan") return !small.test(table ?? "");
      const isIndex = /^(Bitmap )?Index (Only )?Scan$/.test(node["Node Type"]);
      return (
        isIndex && node["Index Cond"] === undefined && !short.test(node["Index Name"] ?? "") && !small.test(table ?? "")
      );
    })
    .map((node) => `${node["Node Type"]} ${node["Relation Name"] ?? ""} ${node["Index Name"] ?? ""}`.trim());

const hot: Record<string, string> = Object.fromEntries(
  Object.entries({
    takeSql,
    submitSql,
    settleSql,
    changeSql,
    sweepSql,
    chunkSql,
    readerSql,
    tallySql,
    sharedSql,
  }).flatMap(([of, texts]) =>
    Object.entries<string | { readonly text: string }>(texts).map(([name, statement]) => [
      `${of}.${name}`,
      typeof statement === "string" ? statement : statement.text,
    ]),
  ),
);

describe.each(["analyzed", "never_analyzed"])(`With ${rows.toLocaleString("en")} jobs stored, tables %s`, (state) => {
  const plan = (text: string) => planOf(clients.get(state)!, text);

  it.each([
    ["takeSql.take", ["job_waiting", "job_returned", "job_pkey", "job_input_pkey", "worker_pkey", "tally_pkey"]],
    ["takeSql.given", ["job_held", "job_input_pkey"]],
    ["submitSql.submit", ["endpoint_pkey"]],
    ["submitSql.known", ["idempotency_pkey", "job_pkey|job_id"]],
    ["submitSql.stored", ["job_id"]],
    ["settleSql.settle", ["job_id", "job_input_pkey"]],
    ["settleSql.settled", ["job_id|job_held"]],
    ["settleSql.heardStopped", ["job_id|job_held"]],
    ["settleSql.progress", ["job_id|job_held"]],
    ["changeSql.lock", ["job_pkey"]],
    ["changeSql.made", ["job_event_pkey", "job_pkey"]],
    ["changeSql.giveBack", ["job_pkey", "job_output_pkey", "stream_pkey", "chunk_pkey", "job_event_pkey"]],
    ["changeSql.retry", ["job_pkey", "delivery_job"]],
    ["changeSql.end", ["job_pkey"]],
    ["changeSql.begin", ["job_pkey"]],
    ["changeSql.setTtl", ["job_pkey"]],
    ["changeSql.confirmStopped", ["job_held"]],
    ["changeSql.cancelWaiting", ["job_waiting", "job_pkey"]],
    ["sweepSql.expired", ["job_expiry"]],
    ["sweepSql.awaitDelivery", ["job_pkey"]],
    ["sweepSql.pending", ["delivery_job"]],
    ["sweepSql.keepStatus", ["idempotency_job"]],
    ["sweepSql.vanish", ["job_pkey"]],
    ["sweepSql.drop", ["job_pkey", "job_input_pkey", "chunk_pkey"]],
    ["sweepSql.dropKeys", ["idempotency_expiry", "idempotency_pkey"]],
    ["chunkSql.append", ["job_id|job_held"]],
    ["chunkSql.peek", ["job_id|job_held", "stream_pkey"]],
    ["chunkSql.grow", ["job_id|job_held"]],
    ["chunkSql.appended", ["job_id", "stream_pkey"]],
    ["chunkSql.handOut", ["stream_pkey", "chunk_pkey"]],
    ["chunkSql.handBack", ["stream_pkey", "chunk_pkey"]],
    ["chunkSql.read", ["chunk_pkey"]],
    ["chunkSql.readLarge", ["chunk_pkey"]],
    ["readerSql.find", ["job_id", "worker_pkey", "job_output_pkey"]],
    ["readerSql.list", ["job_pkey"]],
    ["readerSql.listStatus", ["job_pkey"]],
    ["readerSql.listFAILED", ["job_failed"]],
    ["readerSql.listCANCELLED", ["job_cancelled"]],
    ["readerSql.listTIMED_OUT", ["job_timed_out"]],
    ["readerSql.recent", ["job_pkey"]],
    ["readerSql.happened", ["job_event_pkey"]],
    ["readerSql.held", ["job_held"]],
    ["readerSql.overdue", ["job_deadline"]],
    ["readerSql.unstopped", ["job_held"]],
    ["readerSql.orphaned", ["job_held", "worker_pkey|worker_endpoint"]],
    ["readerSql.nextDeadline", ["job_deadline"]],
    ["readerSql.nextExpiry", ["job_expiry"]],
    ["readerSql.position", ["job_waiting"]],
    ["tallySql.tally", ["tally_pkey"]],
    ["tallySql.oldest", ["job_waiting_normal"]],
    ["tallySql.holdings", ["worker_endpoint", "job_held"]],
    ["sharedSql.beat", ["worker_pkey"]],
    ["sharedSql.grant", ["rate_grant_pkey"]],
    ["sharedSql.forgetGrants", ["rate_grant_bucket"]],
  ])("the plan of %s uses %j", async (name, indexes) => {
    const used = (await plan(hot[name]!)).flatMap((node) => node["Index Name"] ?? []);
    for (const index of indexes) expect(used.join(" ")).toMatch(new RegExp(`(^| )(${index})( |$)`));
  });

  it("no statement of the queue scans a whole table", async () => {
    const found: string[] = [];
    for (const [name, text] of Object.entries(hot)) {
      if (name === "tallySql.recount") continue; // only for tests and repair
      for (const scan of scans(await plan(text))) found.push(`${name}: ${scan}`);
    }
    expect(found).toEqual([]);
  });

  it("no statement of the cool tables scans a table that may be long", async () => {
    const found: string[] = [];
    for (const text of Object.values(await coolStatements())) {
      if (rare.test(text)) continue;
      for (const scan of scans(await plan(text))) found.push(`${scan}: ${text}`);
    }
    expect(found).toEqual([]);
  });

  it("finds the deliveries of a job by its id", async () => {
    const [list] = Object.keys(await coolStatements()).filter((text) => /from "delivery" .*"job_id" =/.test(text));
    const used = (await plan(list!)).flatMap((node) => node["Index Name"] ?? []);
    expect(used).toEqual(["delivery_job_id"]);
  });

  it("takes jobs, and finds expired ones, in the order of the index", async () => {
    for (const name of ["readerSql.list", "sweepSql.expired", "readerSql.overdue", "tallySql.oldest"]) {
      const sorts = (await plan(hot[name]!)).filter((node) => node["Node Type"] === "Sort");
      expect([name, sorts]).toEqual([name, []]);
    }
    // The results are numbered, and so are the workers in line; neither may need a sort of all candidates.
    const below = (node: Node, isLimited: boolean): Node[] => {
      const limited = isLimited || node["Node Type"] === "Limit";
      const own = limited && node["Node Type"] === "Sort" ? [node] : [];
      return [...own, ...(node.Plans ?? []).flatMap((child) => below(child, limited))];
    };
    const [take] = await plan(hot["takeSql.take"]!);
    expect(below(take!, false)).toEqual([]);
  });

  it("the check detects a scan", async () => {
    expect(scans(await plan("SELECT * FROM job WHERE retention_ms = $1"))).not.toEqual([]);
    expect(scans(await plan("SELECT count(*) FROM job"))).not.toEqual([]);
  });
});
