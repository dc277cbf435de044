import { Refused } from "./refused.mjs";
import { jobsByState, openSource } from "./source.mjs";
import { openTarget } from "./target.mjs";

export { Refused };

const batchRows = 2_000;
const batchBytes = 8 * 2 ** 20;
const sayEveryMs = 2_000;

/** Columns that a row needs in PostgreSQL and lacks in SQLite. Servers' lanes begin at 100, so none writes lane 0. */
const added = { tally: { lane: 0 }, stream: { token: 0 } };

/** Moves a data directory's rows into an empty database, all or none. `say` receives progress lines. */
export async function move(directory, url, say) {
  const beganAt = performance.now();
  const source = openSource(directory);
  try {
    const target = await openTarget(url);
    try {
      checkShapes(source.tables, target.tables);
      let rows = 0;
      for (const table of source.tables) rows += await copy(source, target, table, say);
      await setNumbers(source, target);
      await checkJobs(source, target);
      await target.rows("ANALYZE");
      await commit(target);
      const seconds = (performance.now() - beganAt) / 1_000;
      say(`Moved ${counted(rows)} rows in ${seconds.toFixed(1)} s (${counted(Math.round(rows / seconds))}/s).`);
    } finally {
      await target.close();
    }
  } finally {
    source.close();
  }
  say(
    `Now start the server with MILLRACE_DATABASE_URL over ${directory}, which keeps its keys and its workers' homes.`,
  );
  say("Never start it without that setting again: SQLite still holds the same jobs, and they would run a second time.");
}

/** Fails if one of the schemas has gained a column, which would otherwise be lost. */
function checkShapes(sourceTables, targetTables) {
  const targets = new Map(targetTables.map((table) => [table.name, table]));
  for (const { name, columns } of sourceTables) {
    const target = targets.get(name);
    const lost = columns.find((column) => !target?.columns.includes(column.name));
    const given = [...columns.map((column) => column.name), ...Object.keys(added[name] ?? {})];
    const lacking = target?.needed.find((column) => !given.includes(column));
    if (target && !lost && !lacking) continue;
    throw new Error(
      `the table ${name} differs in its column ${lost?.name ?? lacking}, and this program does not know how`,
    );
  }
}

async function copy(source, target, table, say) {
  const beganAt = performance.now();
  const more = Object.entries(added[table.name] ?? {});
  const columns = [...table.columns, ...more.map(([name]) => ({ name, isText: false }))];
  const values = more.map(([, value]) => value);
  const all = source.count(table.name);
  const bytes = columns.map(() => 0);
  let rows = 0;
  let saidAt = beganAt;
  const line = (at) => {
    const rate = Math.round((rows * 1_000) / Math.max(1, at - beganAt));
    return `${table.name}: ${counted(rows)} of ${counted(all)} rows, ${counted(rate)}/s`;
  };
  for (const batch of batches(source.rows(table))) {
    for (const row of batch) row.push(...values);
    await target.insert(table.name, columns, batch);
    rows += batch.length;
    for (const [n, { isText }] of columns.entries()) if (isText) bytes[n] += bytesOf(batch, n);
    const now = performance.now();
    if (now - saidAt < sayEveryMs) continue;
    saidAt = now;
    say(line(now));
  }
  await checkTable(target, table.name, columns, rows, bytes);
  if (rows > 0) say(line(performance.now()));
  return rows;
}

const bytesOf = (batch, n) => batch.reduce((sum, row) => sum + (row[n]?.length ?? 0), 0);

function* batches(rows) {
  let batch = [];
  let bytes = 0;
  for (const row of rows) {
    batch.push(row);
    for (const value of row) bytes += value?.length ?? 8;
    if (batch.length < batchRows && bytes < batchBytes) continue;
    yield batch;
    batch = [];
    bytes = 0;
  }
  if (batch.length > 0) yield batch;
}

/** Checks that the rows, and the bytes of text in each column, are as many as were sent. */
async function checkTable(target, name, columns, rows, bytes) {
  const sums = columns.map(({ name: column, isText }, n) =>
    isText ? `coalesce(sum(octet_length("${column}")), 0) AS c${n}` : `0 AS c${n}`,
  );
  const [found] = await target.rows(`SELECT count(*) AS rows, ${sums.join(", ")} FROM "${name}"`);
  const wrong = columns.find((_, n) => Number(found[`c${n}`]) !== bytes[n]);
  if (Number(found.rows) === rows && wrong === undefined) return;
  throw new Error(
    `the table ${name} arrived with ${found.rows} of ${rows} rows, or not all of ${wrong?.name ?? "them"}`,
  );
}

/** Numbers continue where they were, after those of deleted rows. */
async function setNumbers(source, target) {
  await target.rows("SELECT setval('place', $1, false)", [source.nextPlace()]);
  for (const { name, seq } of source.lastNumbers()) {
    if (seq > 0) await target.rows("SELECT setval(pg_get_serial_sequence($1, 'no'), $2)", [`"${name}"`, seq]);
  }
}

/** Checks that each endpoint has as many jobs in each state as before. */
async function checkJobs(source, target) {
  const states = async (rows) =>
    (await rows).map((row) => [row.endpoint_no, row.status, row.n].map(Number).join(" ")).join("\n");
  const [before, after] = [await states(source.jobs()), await states(target.rows(jobsByState))];
  if (before !== after) throw new Error("the number of jobs of an endpoint in a state differs");
}

async function commit(target) {
  try {
    await target.commit();
  } catch (error) {
    throw new Refused(
      `The connection broke at the commit (${error.message}): run this again; if it then says that the database is not empty, everything was moved.`,
    );
  }
}

const counted = (n) => n.toLocaleString("en-US");
