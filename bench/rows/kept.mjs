// The rows that a server on PostgreSQL rereads of its data in memory: while it is idle, while clients send unknown keys,
// and while an endpoint is saved every second, with a second server that must hear of it.
import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { entry } from "../entries.mjs";
import { openStore } from "../fill.mjs";
import { makeMillrace, startMillrace } from "../millrace.mjs";
import { makeFolder } from "../processes.mjs";
import { connectPostgres } from "../services.mjs";

const kept = 10_000;
const callers = 64;
const most = { must: 50, aim: 25 };
/** PostgreSQL reports an idle connection's counts up to ten seconds after its statements. */
const settleMs = 11_000;
const saveEveryMs = 1_000;
const env = { MILLRACE_SEAL_KEY: "0123456789abcdef".repeat(4) };

export const row = {
  name: "kept",
  words: "rows that a server reads of 10,000 endpoints, templates and keys, idle, beside unknown keys and beside saves",
  databases: ["postgres"],
  async measure({ services, idleSeconds, onRound, scope }) {
    const { databaseUrl } = await services.storage("postgres");
    const server = await makeMillrace(scope, { databaseUrl, env });
    await server.start();
    const endpoint = await server.makeEndpoint(makeFolder(scope), { workersMax: 0 });
    await server.stop();
    await addCopies(server, endpoint);
    await server.start();
    const client = await connectPostgres(server.databaseUrl);
    scope.defer(() => client.end());
    /** The rows that the servers read while `act` runs and the counts settle, and the seconds that `act` took. */
    const readDuring = async (name, act) => {
      onRound(name);
      await sleep(settleMs);
      const before = await rowsRead(client);
      const beganAt = performance.now();
      await act();
      const seconds = (performance.now() - beganAt) / 1_000;
      await sleep(settleMs);
      return { rows: (await rowsRead(client)) - before, seconds };
    };
    const settleSeconds = settleMs / 1_000;
    const rest = await readDuring(`waiting for ${idleSeconds} s`, () => sleep(idleSeconds * 1_000));
    const idle = rest.rows / (rest.seconds + settleSeconds);
    /** Of each server, in a second of the busy time alone: in the settling time they are idle. */
    const busyRate = ({ rows, seconds }, servers = 1) => (rows / servers - idle * settleSeconds) / seconds;
    let refused = 0;
    const beside = await readDuring(`sending unknown keys for ${idleSeconds} s`, async () => {
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
    const other = await startMillrace(scope, { databaseUrl, env });
    const saving = await readDuring(`saving an endpoint every second for ${idleSeconds} s`, async () => {
      for (let n = 1; n <= (idleSeconds * 1_000) / saveEveryMs; n++) {
        await Promise.all([server.call("PATCH", `/v1/endpoints/${endpoint}`, { idleTimeout: n }), sleep(saveEveryMs)]);
      }
    });
    await Promise.all([server.stop(), other.stop()]);
    const [garbage, saves] = [busyRate(beside), busyRate(saving, 2)];
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
      entry({
        database: "postgres",
        what: `${what} by each of two servers, beside one save a second`,
        unit: "/s",
        ours: [saves],
        figure: figure(saves),
        most,
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
    await store.run(`INSERT INTO api_key (id, hash, prefix, scope, owner_no, is_bootstrap)
      SELECT 'bench' || x, 'bench' || x, 'mr_bench', k.scope, k.owner_no, 0 FROM api_key k, ${numbers} WHERE k.is_bootstrap = 1`);
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
