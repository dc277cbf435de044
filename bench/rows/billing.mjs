// Bills of a year of 1,000 endpoints: how long each kind of them takes.
import { entry } from "../entries.mjs";
import { openStore } from "../fill.mjs";
import { makeMillrace } from "../millrace.mjs";
import { connectPostgres } from "../services.mjs";

const endpoints = 1_000;
const hoursADay = 2;
const calls = 7;
const most = { must: 100, aim: 50 };
const day = 86_400_000;
const year = Date.UTC(2025, 0, 1);
const period = "startTime=2025-01-01T00:00:00Z&endTime=2026-01-01T00:00:00Z";
const bills = [
  ["by month and endpoint", "bucketSize=month"],
  ["by month and endpoint, in Europe/Berlin", "bucketSize=month&timeZone=Europe/Berlin"],
  ["by day and GPU type", "bucketSize=day&grouping=gpuTypeId"],
  [
    "by hour of one endpoint, for 60 days",
    "bucketSize=hour&endpointId=endpoint7",
    "startTime=2025-03-01T00:00:00Z&endTime=2025-04-30T00:00:00Z",
  ],
];

export const row = {
  name: "billing",
  words: "how long bills of a year of 1,000 endpoints take",
  async measure({ databases, ...rest }) {
    const entries = [];
    for (const database of databases) entries.push(...(await measureOn(database, rest)));
    return entries;
  },
};

async function measureOn(database, { services, onRound, scope }) {
  const { databaseUrl } = await services.storage(database);
  const server = await makeMillrace(scope, { databaseUrl });
  await server.start();
  await server.stop();
  onRound("writing a year of usage");
  await fillYear(server);
  await server.start();
  const entries = [];
  for (const [what, query, times = period] of bills) {
    onRound(what);
    const ours = [];
    for (let n = 0; n <= calls; n++) {
      const beganAt = performance.now();
      const records = await server.call("GET", `/v1/billing/endpoints?${query}&${times}`);
      if (!Array.isArray(records) || records.length === 0)
        throw new Error(`no bill ${what}: ${JSON.stringify(records)}`);
      if (n > 0) ours.push(performance.now() - beganAt); // the first is a warm-up
    }
    const median = ours.toSorted((a, b) => a - b)[Math.floor(calls / 2)];
    const figure = { value: median, unit: "ms" };
    entries.push(
      entry({ database, what: `bill of a year of 1,000 endpoints ${what}`, unit: "ms", ours, figure, most }),
    );
  }
  await server.stop();
  return entries;
}

/** Writes what 1,000 endpoints have used in some hours of each day, as the server would have added it up. */
async function fillYear(server) {
  const store = await openStore(server);
  try {
    const [{ no }] = await store.run(`SELECT no FROM "user" ORDER BY no LIMIT 1`);
    const insert = (resource, span, at, amount, from) =>
      store.run(`INSERT INTO usage (kind, owner_no, resource, span, at, gpu_type, amount, gpu_cost, cpu_cost, disk_cost)
        SELECT 'endpoint', ${no}, ${resource}, ${span}, ${at}, 'NVIDIA L4', ${amount}, ${amount}, 0, 0 FROM ${from}`);
    const days = `(SELECT e.x AS e, d.x AS d FROM ${aliased(store, 1, endpoints, "e")}, ${aliased(store, 0, 364, "d")}) AS r`;
    for (let hour = 0; hour < hoursADay; hour++)
      await insert("'endpoint' || r.e", 0, `${year} + r.d * ${day} + ${hour * 3_600_000}`, 3_600_000, days);
    await insert("'endpoint' || r.e", 1, `${year} + r.d * ${day}`, 3_600_000 * hoursADay, days);
    const all = `(SELECT d.x AS d FROM ${aliased(store, 0, 364, "d")}) AS r`;
    await insert("''", 1, `${year} + r.d * ${day}`, 3_600_000 * hoursADay * endpoints, all);
    for (let month = 0; month < 12; month++) {
      const [at, end] = [Date.UTC(2025, month), Date.UTC(2025, month + 1)];
      const amount = (((end - at) / day) * hoursADay * 3_600_000).toFixed();
      const some = `(SELECT e.x AS e FROM ${aliased(store, 1, endpoints, "e")}) AS r`;
      await insert("'endpoint' || r.e", 2, at, amount, some);
    }
    await store.run("ANALYZE");
  } finally {
    await store.close();
  }
  if (server.databaseUrl === undefined) return;
  const client = await connectPostgres(server.databaseUrl);
  await client.query("VACUUM usage");
  await client.end();
}

/** A series of numbers as a table with this name and a column x. */
const aliased = ({ dialect }, first, last, name) =>
  dialect.series(first, last).includes("generate_series")
    ? `generate_series(${first}::bigint, ${last}::bigint) AS ${name}(x)`
    : `${dialect.series(first, last)} AS ${name}`;
