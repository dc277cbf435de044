import pg from "pg";
import { numbers } from "../../packages/server/dist/stores/postgres/connection/arrays.js";
import { migrate } from "../../packages/server/dist/stores/postgres/migrate.js";
import { Refused } from "./refused.mjs";

/** Tables that exist only for servers that share a database. */
const extra = ["lease", "rate_grant", "revision", "schema"];
const connectMs = 10_000;

/** An empty database with our tables, in a transaction that locks out every other session until it ends. */
export async function openTarget(url) {
  const client = new pg.Client({
    connectionString: url,
    application_name: "millrace migrate",
    connectionTimeoutMillis: connectMs,
    keepAlive: true,
    types: { getTypeParser: () => (text) => text },
  });
  client.on("error", () => {}); // the statement in flight fails too
  try {
    await client.connect();
  } catch (error) {
    throw new Refused(notConnected(error));
  }
  const rows = async (text, values) => (await client.query(text, values)).rows;
  const connection = { query: rows };
  try {
    await refuseForeign(rows);
    await migrate(connection);
    await client.query("BEGIN");
    const tables = await tablesOf(rows);
    // A server that starts meanwhile must wait, and then finds everything or nothing.
    await client.query(`LOCK TABLE ${tables.map(({ name }) => `"${name}"`).join(", ")} IN ACCESS EXCLUSIVE MODE`);
    await refuseFilled(rows, tables);
    return {
      tables: tables.filter(({ name }) => !extra.includes(name)),
      insert: (table, columns, batch) => client.query(insertInto(table, columns), arrays(columns, batch)),
      rows,
      commit: () => client.query("COMMIT"),
      close: () => client.end().catch(() => {}), // uncommitted changes are lost with the connection
    };
  } catch (error) {
    await client.end().catch(() => {});
    throw error;
  }
}

/** Distinguishes a refusal by the database from a failure to reach it. Neither message shows the URL. */
function notConnected({ code, message }) {
  if (code === "28P01") return "The database refused the password: check the one in --to.";
  if (/^28/.test(code ?? "")) return `The database refused the user (${message}): check the one in --to.`;
  if (code === "3D000") return `The database server has no such database (${message}): create it, or check --to.`;
  return `The database cannot be reached (${code ?? message}): check --to, and that it runs.`;
}

const ownTables = `SELECT relname AS name FROM pg_class
  WHERE relkind IN ('r', 'p') AND relnamespace = current_schema()::regnamespace ORDER BY relname`;

async function refuseForeign(rows) {
  const names = (await rows(ownTables)).map(({ name }) => name);
  if (names.length > 0 && !names.includes("schema")) {
    throw new Refused(`The database holds tables of another program (${names[0]}): create an empty database.`);
  }
}

async function tablesOf(rows) {
  const found = await rows(
    `SELECT table_name, column_name, is_nullable = 'NO' AND column_default IS NULL AND is_identity = 'NO' AS needed
     FROM information_schema.columns WHERE table_schema = current_schema() ORDER BY table_name, ordinal_position`,
  );
  const tables = new Map();
  for (const { table_name: name, column_name: column, needed } of found) {
    if (!tables.has(name)) tables.set(name, { name, columns: [], needed: [] });
    tables.get(name).columns.push(column);
    if (needed === "t") tables.get(name).needed.push(column);
  }
  return [...tables.values()];
}

async function refuseFilled(rows, tables) {
  for (const { name } of tables) {
    if (name === "schema" || name === "revision") continue;
    const [row] = await rows(`SELECT 1 FROM "${name}" LIMIT 1`);
    if (row) throw new Refused(`The database is not empty (the table ${name} has rows): create an empty database.`);
  }
}

const insertInto = (table, columns) => ({
  name: table,
  text: `INSERT INTO "${table}" (${columns.map(({ name }) => `"${name}"`).join(", ")})
    SELECT * FROM unnest(${columns.map(({ isText }, n) => `$${n + 1}::${isText ? "text" : "bigint"}[]`).join(", ")})`,
});

const arrays = (columns, batch) =>
  columns.map(({ isText }, n) => (isText ? texts : numbers)(batch.map((row) => row[n])));

const textOid = 25;

/** `text[]` in PostgreSQL's binary format, from texts that are bytes already. */
function texts(values) {
  const parts = [Buffer.alloc(20)];
  const [head] = parts;
  head.writeInt32BE(1, 0); // dimensions
  head.writeInt32BE(values.includes(null) ? 1 : 0, 4);
  head.writeInt32BE(textOid, 8);
  head.writeInt32BE(values.length, 12);
  head.writeInt32BE(1, 16); // the first index
  for (const value of values) {
    const size = Buffer.alloc(4);
    size.writeInt32BE(value?.length ?? -1, 0);
    parts.push(size);
    if (value !== null) parts.push(value);
  }
  return Buffer.concat(parts);
}
