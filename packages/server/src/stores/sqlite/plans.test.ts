import { DummyDriver, Kysely, SqliteAdapter, SqliteIntrospector, SqliteQueryCompiler } from "kysely";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { statusIndexes } from "../tables/job-state.js";
import { tableStores } from "../tables/open.js";
import type { Tables } from "../tables/schema.js";
import { noReserve } from "./disk/disk-reserve.js";
import { type Database, openDatabase } from "./driver.js";
import { migrate } from "./migrate.js";
import { sqliteJobReader } from "./reader.js";
import { sqliteTallyReader } from "./tallies.js";
import { textsInPieces } from "./texts/stored-texts.js";
import { writes } from "./writing/writes.js";

const rows = 100_000;

/** Half of the jobs wait, some run, some are over; 20 endpoints of 10 workers each. */
const load = `
  WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 200)
  INSERT INTO worker (no, id, endpoint_no, version, host_no, wanted, created_at)
  SELECT n, 'worker' || n, n % 20 + 1, 1, 1, 'running', 1 FROM n;
  WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < ${rows})
  INSERT INTO job (no, endpoint_no, id, place, status, low_priority, worker_no, created_at, queued_at, taken_at,
    finished_at, deadline_at, ttl_end_at, expires_at, execution_timeout_ms, retention_ms, has_webhook, keyed)
  SELECT n, n % 20 + 1, 'job-' || n, n, CASE WHEN n % 2 = 0 THEN 0 ELSE n / 2 % 5 + 1 END, n % 7 = 0, n % 200 + 1, n, n, n,
    CASE WHEN n % 2 = 1 AND n / 2 % 5 > 0 THEN n END, n + 600000, n + 86400000, n + 86400000, 600000, 1800000, n % 3 = 0, n % 11 = 0
  FROM n;
  INSERT INTO job_input (job_no, body) SELECT no, '{}' FROM job;
  INSERT INTO idempotency SELECT endpoint_no, 'key-' || no, 'body', 'run', no, id, 0, no + 86400000 FROM job WHERE keyed = 1;
  INSERT INTO delivery (job_no, job_id, endpoint_no, webhook_id, url, state, next_at)
  SELECT no, id, endpoint_no, 'msg', 'http://a', 'pending', no FROM job WHERE has_webhook = 1 AND status > 1;
`;

let db: Database;
const texts: string[] = [];

/** Collects all statements of the queue's stores as they prepare them. */
function collect(): void {
  const watched: Database = {
    prepare(sql) {
      texts.push(sql);
      return db.prepare(sql);
    },
    exec: (sql) => db.exec(sql),
    close: () => db.close(),
  };
  writes(watched, noReserve);
  sqliteJobReader(watched);
  sqliteTallyReader(watched);
}

const planOf = (sql: string): string[] =>
  db
    .prepare(`EXPLAIN QUERY PLAN ${sql}`)
    .all()
    .map((row) => row.detail as string);

/**
 * Rows that were already found, a list of arguments, and the indexes of live workers and of held jobs: all are short.
 */
const isShort =
  /^SCAN (CONSTANT ROW|\(subquery|page$|sized$|waits$|json_each |worker USING INDEX worker_endpoint|job USING INDEX job_held)/;
const isScan = (line: string) => line.startsWith("SCAN") && !isShort.test(line);

/** The only statement that contains all these words. */
function statement(...words: string[]): string {
  const found = [...new Set(texts)].filter((sql) => words.every((word) => sql.replaceAll(/\s+/g, " ").includes(word)));
  expect(found).toHaveLength(1);
  return found[0] as string;
}

beforeAll(() => {
  db = openDatabase(":memory:");
  migrate(db);
  db.exec(`BEGIN; ${load} COMMIT`);
  collect();
});
afterAll(() => db.close());

describe(`With ${rows.toLocaleString("en")} jobs stored`, () => {
  it.each([
    ["take", ["SET status = 1, worker_no", "LIMIT 1"], "job_waiting"],
    ["take of many", ["SET status = 1, worker_no", "LIMIT ?4"], "job_waiting"],
    ["find", ["WHERE j.endpoint_no = ? AND j.id = ?"], "job_id"],
    ["settle", ["SET status = ?1, finished_at", "AND worker_no = ?5"], "job_id"],
    ["the jobs that a worker holds", ["FROM job WHERE worker_no = ? AND (status = 1 OR stop_wanted = 1)"], "job_held"],
    ["the oldest waiting job", ["SELECT queued_at"], "job_waiting_normal"],
    ["the overdue jobs", ["deadline_at <= ?"], "job_deadline"],
    ["the next deadline", ["min(deadline_at)"], "job_deadline"],
    ["the expired jobs", ["FROM job WHERE expires_at <= ?1"], "job_expiry"],
    ["the next expiry", ["min(expires_at)"], "job_expiry"],
    ["a page of the list", ["j.endpoint_no = ?1 AND j.no < ?2", "j.expires_at > ?4 ORDER BY j.no"], "job_listed"],
    ["a part of the list by state", ["FROM job INDEXED BY job_listed", "AND no >= ?3"], "job_listed"],
    ["the position in the queue", ["AND place < ? LIMIT ?"], "job_waiting"],
    ["the holdings of an endpoint's workers", ["AS held"], "job_held"],
    ["cancelling waiting jobs", ["SET status = 4, finished_at", "place <= ?3"], "job_waiting"],
    ["the jobs to stop", ["WHERE stop_wanted = 1 AND worker_no IN"], "job_held"],
  ])("the plan of %s uses an index", (_, words, index) => {
    const plan = planOf(statement(...words));
    expect(plan.join("\n")).toMatch(new RegExp(`SEARCH (job|j) .*USING (COVERING )?INDEX ${index}`));
    expect(plan.filter(isScan)).toEqual([]);
  });

  it.each(Object.values(statusIndexes))("lists jobs that ended badly by an index of their own: %s", (index) => {
    const plan = planOf(statement(`FROM job INDEXED BY ${index}`, "AND no >= ?3"));
    expect(plan.join("\n")).toMatch(new RegExp(`SEARCH job USING INDEX ${index}`));
  });

  it("takes in the order of the index, without sorting", () => {
    expect(planOf(statement("SET status = 1, worker_no", "LIMIT 1")).join("\n")).not.toContain("TEMP B-TREE");
    expect(planOf(statement("SET status = 1, worker_no", "LIMIT ?4")).join("\n")).not.toContain("TEMP B-TREE");
    expect(planOf(statement("SELECT queued_at")).join("\n")).not.toContain("TEMP B-TREE");
    expect(planOf(statement("FROM job WHERE expires_at <= ?1")).join("\n")).not.toContain("TEMP B-TREE");
    expect(planOf(statement("AND place < ? LIMIT ?")).join("\n")).not.toContain("TEMP B-TREE");
  });

  it("finds the deliveries of a job by its id", async () => {
    const asked: string[] = [];
    const stores = tableStores(() => ({
      sql: new Kysely<Tables>({
        dialect: {
          createAdapter: () => new SqliteAdapter(),
          createDriver: () => new DummyDriver(),
          createIntrospector: (db) => new SqliteIntrospector(db),
          createQueryCompiler: () => new SqliteQueryCompiler(),
        },
      }),
      texts: textsInPieces,
      read: async (query) => {
        asked.push(query.sql);
        return [];
      },
      write: async () => [],
    }));
    await stores.deliveries.list({ endpointNos: [1, 2], jobId: "job", limit: 10 });
    expect(asked.flatMap(planOf).join("\n")).toMatch(
      /^SEARCH delivery USING INDEX delivery_job_id \(job_id=\? AND endpoint_no=\?\)/,
    );
  });

  it("no statement of the queue scans a whole table", () => {
    const scans = [...new Set(texts)].filter((sql) => planOf(sql).some(isScan));
    expect(scans).toEqual([]);
    expect(new Set(texts).size).toBeGreaterThan(50);
  });

  it("the check detects a scan", () => {
    expect(planOf("SELECT * FROM job WHERE retention_ms = 5")).toEqual(["SCAN job"]);
  });
});
