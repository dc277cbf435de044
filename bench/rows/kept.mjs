// The rows that a server on PostgreSQL rereads of its data in memory: while it is idle, and while clients send unknown
// keys.
import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { entry } from "../entries.mjs";
import { openStore } from "../fill.mjs";
import { makeMillrace } from "../millrace.mjs";
import { makeFolder } from "../processes.mjs";
import { connectPostgres } from "../services.mjs";

const kept = 10_000;
const callers = 64;
const most = { must: 50, aim: 25 };
/** PostgreSQL reports an idle connection's counts up to ten seconds after its statements. */
const settleMs = 11_000;

export const row = {
  name: "kept",
  words: "rows that a server reads of 10,000 endpoints, templates and keys, idle and beside unknown keys",
  databases: ["postgres"],
  async measure({ services, idleSeconds, onRound, scope }) {
    const server = await makeMillrace(scope, await services.storage("postgres"));
    await server.start();
    const endpoint = await server.makeEndpoint(makeFolder(scope), { workersMax: 0 });
    await server.stop();
    await addCopies(server, endpoint);
    await server.start();
    const client = await connectPostgres(server.databaseUrl);
    scope.defer(() => client.end());
    const rowsPerSecond = async (name, act) => {
      onRound(name);
      await sleep(settleMs);
      const before = await rowsRead(client);
      await act();
      await sleep(settleMs);
      return ((await rowsRead(client)) - before) / (idleSeconds + settleMs / 1_000);
    };
    const idle = await rowsPerSecond(`waiting for ${idleSeconds} s`, () => sleep(idleSeconds * 1_000));
    let refused = 0;
    const garbage = await rowsPerSecond(`sending unknown keys for ${idleSeconds} s`, async () => {
      const until = Date.now() + idleSeconds * 1_000;
      const send = async () => {
        while (Date.now() < until) {
          const headers = { authorization: `Bearer mr_${randomBytes(20).toString("hex")}` };
          const reply = await fetch(`${server.url}/v2/${endpoint}/health`, { headers });
          await reply.arrayBuffer();
          if (reply.status === 401) refused++;
        }
      };
      await Promise.all(Array.from({ length: callers }, send));
    });
    await server.stop();
    const what = "10,000 endpoints, templates and keys: rows read a second";
    const figure = (value) => ({ value, unit: "rows/s" });
    return [
      entry({ database: "postgres", what: `${what}, idle`, unit: "/s", ours: [idle], figure: figure(idle), most }),
      entry({
        database: "postgres",
        what: `${what}, beside unknown keys`,
        unit: "/s",
        ours: [garbage],
        figure: figure(garbage),
        most,
        note: `${Math.round(refused / idleSeconds)} unknown keys a second were refused`,
      }),
    ];
  },
};

/**
 * Writes copies of an endpoint and its template, and keys, straight into the store: that many requests would take
 * minutes.
 */
async function addCopies(server, endpointId) {
  const store = await openStore(server);
  const numbers = store.dialect.series(1, kept);
  try {
    await store.run(`INSERT INTO template (id, owner_no, settings)
      SELECT 'bench' || x, owner_no, settings FROM template, ${numbers}
      WHERE id = (SELECT settings::json ->> 'templateId' FROM endpoint WHERE id = '${endpointId}')`);
    await store.run(`INSERT INTO endpoint (id, owner_no, settings, version, created_at)
      SELECT 'bench' || x, owner_no, replace(settings, '"templateId":"', '"templateId":"bench'), version, created_at
      FROM endpoint, ${numbers} WHERE id = '${endpointId}'`);
    await store.run(`INSERT INTO api_key (hash, prefix, scope, owner_no, is_bootstrap)
      SELECT 'bench' || x, 'mr_bench', k.scope, k.owner_no, 0 FROM api_key k, ${numbers} WHERE k.is_bootstrap = 1`);
    await store.run("ANALYZE");
  } finally {
    await store.close();
  }
}

/** All rows of our tables that were read so far, by scans and through indexes. */
async function rowsRead(client) {
  const { rows } = await client.query(`SELECT pg_stat_clear_snapshot(),
    sum(seq_tup_read + coalesce(idx_tup_fetch, 0))::bigint AS n FROM pg_stat_user_tables`);
  return Number(rows[0].n);
}
