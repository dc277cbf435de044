import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { startPostgres, type TestPostgres } from "../../../../../../scripts/postgres.mjs";
import { limits } from "../../../limits/index.js";
import { makeDatabase, openAs } from "../../contracts/postgres-fixture.js";
import { takeSql } from "../jobs/take.js";
import { Connections } from "./connections.js";

let server: TestPostgres;
let connections: Connections;
beforeAll(async () => {
  server = await startPostgres({ settings: { fsync: "off", autovacuum: "off" } });
  const url = await makeDatabase(server, "plans");
  await (await openAs("host", url)).close();
  connections = new Connections(url, 1);
});
afterAll(async () => {
  vi.restoreAllMocks();
  await connections.close();
  await server.end();
});

const grow = `INSERT INTO job (no, endpoint_no, id, place, status, low_priority, created_at, queued_at, ttl_end_at, expires_at,
    execution_timeout_ms, retention_ms, has_webhook, keyed)
  SELECT n, 1, 'job-' || n, n, 0, 0, n, n, n, n, 1, 1, 0, 0 FROM generate_series(1, 50000) n`;

it("statements planned while a table was small are planned again", async () => {
  let now = performance.now();
  vi.spyOn(performance, "now").mockImplementation(() => now);
  /** The plan by which a take finds the rows that it has picked. */
  const planOfTake = () =>
    connections.lend(async (connection) => {
      await connection.query(takeSql.take.text, [1, 1, 1, 0, "{}", "{}", 1]);
      const [found] = await connection.query<{ name: string }>(
        "SELECT name FROM pg_prepared_statements WHERE statement LIKE '%WITH slot%' AND statement NOT LIKE '%pg_prepared%'",
      );
      const lines = await connection.query<{ "QUERY PLAN": string }>(
        `EXPLAIN EXECUTE ${found?.name} (1, 1, 1, 0, '{}', '{}', 1)`,
      );
      return lines.map((line) => line["QUERY PLAN"]).join("\n");
    });
  const byNumber = /Index Scan using job_pkey on job j/;
  expect(await planOfTake()).not.toMatch(byNumber); // it scans all jobs of the endpoint: there are none
  await connections.lend((connection) => connection.query(grow));
  expect(await planOfTake()).not.toMatch(byNumber);
  now += limits.plansKeptMsMin;
  expect(await planOfTake()).toMatch(byNumber);
});
