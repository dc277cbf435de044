// Writes rows straight into the store of a stopped server, as the server would have written them: a million jobs over
// HTTP would take longer than the measurement itself.
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { root } from "../scripts/set-up.mjs";
import { connectPostgres } from "./services.mjs";

const input = '{"prompt":"a small input","steps":20,"seed":7}';
const output = '{"greeting":"bench"}';
const minute = 60_000;
const day = 1_440 * minute;

/** The columns of each kind of job; `created` is when it was submitted. Other columns are 0 or NULL. */
const kinds = {
  waiting: { since: () => Date.now() - 4 * minute, status: 0, expires: `created + ${day}`, tally: "waiting" },
  finished: {
    since: () => Date.now() - 5 * minute,
    status: 2,
    expires: `created + ${30 * minute}`,
    tally: "completed",
  },
  expired: {
    since: () => Date.now() - 40 * minute,
    status: 2,
    expires: `created + ${30 * minute}`,
    tally: "completed",
  },
};

/** The differences between the two databases. */
const dialects = {
  sqlite: {
    series: (first, last) =>
      `(WITH RECURSIVE n(x) AS (SELECT ${first} UNION ALL SELECT x + 1 FROM n WHERE x < ${last}) SELECT x FROM n)`,
    id: "printf('%08x-%04x-7%03x-8%03x-%012x-u1', created >> 16, created & 65535, x & 4095, (x >> 12) & 4095, x)",
    nextPlace: "SELECT value AS place FROM counter WHERE name = 'next_place'",
    setPlace: (next) => `UPDATE counter SET value = ${next} WHERE name = 'next_place'`,
    tally: (
      no,
      column,
      count,
    ) => `INSERT INTO tally (endpoint_no, waiting, waiting_normal, running, completed, failed, retried)
      VALUES (${no}, 0, 0, 0, 0, 0, 0) ON CONFLICT DO NOTHING; UPDATE tally SET ${column} = ${column} + ${count} WHERE endpoint_no = ${no}`,
    tidy: ["PRAGMA wal_checkpoint(TRUNCATE)"],
  },
  postgres: {
    series: (first, last) => `generate_series(${first}::bigint, ${last}::bigint) AS n(x)`,
    id: `lpad(to_hex(created >> 16), 8, '0') || '-' || lpad(to_hex(created & 65535), 4, '0') || '-7' || lpad(to_hex(x & 4095), 3, '0')
      || '-8' || lpad(to_hex((x >> 12) & 4095), 3, '0') || '-' || lpad(to_hex(x), 12, '0') || '-u1'`,
    nextPlace: "SELECT CASE WHEN is_called THEN last_value + 1 ELSE last_value END AS place FROM place",
    setPlace: (next) => `SELECT setval('place', ${next}, false)`,
    tally: (
      no,
      column,
      count,
    ) => `INSERT INTO tally (endpoint_no, lane, waiting, waiting_normal, running, completed, failed, retried)
      VALUES (${no}, 0, 0, 0, 0, 0, 0, 0) ON CONFLICT DO NOTHING; UPDATE tally SET ${column} = ${column} + ${count} WHERE endpoint_no = ${no} AND lane = 0`,
    // The work that autovacuum would have done by then, with all pages on disk.
    tidy: ["VACUUM (ANALYZE) job", "VACUUM (ANALYZE) job_input", "VACUUM (ANALYZE) job_output", "CHECKPOINT"],
  },
};

/** Opens the store of a stopped server for SQL. */
export async function openStore({ databaseUrl, dataDir }) {
  if (databaseUrl !== undefined) {
    const client = await connectPostgres(databaseUrl);
    return {
      dialect: dialects.postgres,
      run: async (text) => (await client.query(text)).rows,
      close: () => client.end(),
    };
  }
  const { openDatabase } = await import(join(root, "packages/server/dist/stores/sqlite/driver.js"));
  const db = openDatabase(join(dataDir, "millrace.db"));
  return {
    dialect: dialects.sqlite,
    run: async (text) => (/^\s*(SELECT|PRAGMA)/.test(text) ? db.prepare(text).all() : db.exec(text)),
    close: () => db.close(),
  };
}

/** Adds jobs to an endpoint; `counts` are the numbers of each kind, in the order of submission. */
export async function fill(server, endpointId, counts) {
  const store = await openStore(server);
  try {
    const [{ no }] = await store.run(`SELECT no FROM endpoint WHERE id = '${endpointId}'`);
    for (const [kind, count] of Object.entries(counts)) await addJobs(store, Number(no), kind, count);
    for (const statement of store.dialect.tidy) await store.run(statement);
  } finally {
    await store.close();
  }
  // Data in the system's cache must not be written during a measurement.
  spawnSync("sync");
}

async function addJobs({ dialect, run }, endpointNo, kind, count) {
  const { since, status, expires, tally } = kinds[kind];
  const [{ place }] = await run(dialect.nextPlace);
  const first = Number(place);
  const last = first + count - 1;
  const created = `${since()} + (x - ${first}) * ${minute} / ${count}`;
  const jobs = `(SELECT x, ${created} AS created FROM ${dialect.series(first, last)}) AS jobs`;
  const isOver = status === 2;
  const times = isOver ? "created + 5, created + 10, 1, 1" : "NULL, NULL, 0, NULL";
  await run("BEGIN");
  await run(`INSERT INTO job (no, place, endpoint_no, id, status, low_priority, created_at, queued_at, ttl_end_at, expires_at,
    execution_timeout_ms, retention_ms, has_webhook, keyed, taken_at, finished_at, starts, worker_no)
    SELECT x, x, ${endpointNo}, ${dialect.id}, ${status}, 0, created, created, created + ${day}, ${expires},
    ${10 * minute}, ${30 * minute}, 0, 0, ${times} FROM ${jobs}`);
  await run(`INSERT INTO job_input (job_no, body) SELECT x, '${input}' FROM ${dialect.series(first, last)}`);
  if (isOver)
    await run(`INSERT INTO job_output (job_no, output) SELECT x, '${output}' FROM ${dialect.series(first, last)}`);
  await run(dialect.tally(endpointNo, tally, count));
  if (tally === "waiting") await run(dialect.tally(endpointNo, "waiting_normal", count));
  await run(dialect.setPlace(last + 1));
  await run("COMMIT");
}
