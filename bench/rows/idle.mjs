// The cost of thousands of waiting clients for a server that has nothing to do.
import { createHash } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { entry } from "../entries.mjs";
import { openStore } from "../fill.mjs";
import { makeMillrace } from "../millrace.mjs";
import { cpuSeconds, residentBytes } from "../proc.mjs";
import { makeFolder, startAgent } from "../processes.mjs";
import { authorized, body } from "./run.mjs";

const memory = { must: 250, aim: 125 };
const cpu = { must: 3, aim: 1.5 };
const polls = 5_000;
const waits = 1_000;
const secret = "secret-of-all-the-bench's-workers";

export const row = {
  name: "idle",
  words: "5,000 polls of workers and 1,000 /runsync that wait",
  async measure({ services, databases, idleSeconds, onRound, scope }) {
    const entries = [];
    for (const database of databases) {
      onRound(`opening, ${database}`);
      const { server, polled, waited } = await serverWithWorkers(scope, services, database);
      await sleep(2_000);
      const before = residentBytes(server.pid);
      const callers = await startAgent(scope, "agents/waiting-clients.mjs");
      const headers = authorized;
      await callers.ask("poll", { url: server.url, paths: polled });
      await callers.ask("wait", {
        url: server.url,
        path: `/v2/${waited}/runsync?wait=300000`,
        headers,
        body,
        count: waits,
      });
      await sleep(3_000);
      onRound(`waiting for ${idleSeconds} s, ${database}`);
      const cpuBefore = cpuSeconds(server.pid);
      const growths = [];
      for (let second = 0; second < idleSeconds; second++) {
        await sleep(1_000);
        growths.push((residentBytes(server.pid) - before) / 1e6);
      }
      const share = ((cpuSeconds(server.pid) - cpuBefore) / idleSeconds) * 100;
      const { open, answers } = await callers.ask("end");
      if (open !== polls + waits) throw new Error(`${open} of ${polls + waits} clients were left.`);
      const what = `${polls.toLocaleString("en")} polls and ${waits.toLocaleString("en")} /runsync that wait`;
      entries.push(
        entry({
          database,
          what: `${what}: memory growth`,
          unit: "MB",
          ours: growths,
          figure: { value: Math.max(...growths), unit: "MB" },
          most: memory,
        }),
        entry({
          database,
          what: `${what}: processor time, of one core`,
          unit: "%",
          ours: [share],
          figure: { value: share, unit: "%" },
          most: cpu,
          note: `each poll is answered after 20 s and asked again: ${Math.round(answers / idleSeconds)} requests a second`,
        }),
      );
      // Its workers are only rows: during a stop it would wait for them.
      await server.kill();
    }
    return entries;
  },
};

/**
 * A server with an endpoint of 5,000 workers of another host, and an endpoint without workers whose jobs wait. The
 * workers are rows: that many processes would need more than the machine has.
 */
async function serverWithWorkers(scope, services, database) {
  const server = await makeMillrace(scope, await services.storage(database));
  await server.start();
  const endpoint = await server.makeEndpoint(makeFolder(scope), { workersMax: 0 });
  const waited = await server.makeEndpoint(makeFolder(scope), { workersMax: 0 });
  await server.stop();
  const ids = Array.from({ length: polls }, (_, n) => `bench${String(n).padStart(9, "0")}`);
  await addWorkers(server, endpoint, ids);
  await server.start();
  return {
    server,
    waited,
    polled: ids.map(
      (id) => `/v2/${endpoint}/job-take/${id}?gpu=cpu&token=${encodeURIComponent(secret)}&job_in_progress=0`,
    ),
  };
}

async function addWorkers(server, endpointId, ids) {
  const store = await openStore(server);
  const now = Date.now();
  const hash = createHash("sha256").update(secret).digest("hex");
  try {
    const [endpoint] = await store.run(`SELECT no, settings FROM endpoint WHERE id = '${endpointId}'`);
    const settings = { ...JSON.parse(endpoint.settings), workersMin: ids.length, workersMax: ids.length };
    await store.run(
      `UPDATE endpoint SET settings = '${JSON.stringify(settings).replaceAll("'", "''")}' WHERE no = ${endpoint.no}`,
    );
    // As if the other host's server existed, too.
    await store.run(`INSERT INTO host (id, seen_at) VALUES ('elsewhere', ${now + 3_600_000})`);
    const [host] = await store.run("SELECT no FROM host WHERE id = 'elsewhere'");
    const seen =
      server.databaseUrl === undefined ? ["", ""] : [", seen_at, busy_at, polled_at", `, ${now}, ${now}, ${now}`];
    const rows = ids.map(
      (id) => `('${id}', ${endpoint.no}, 1, ${host.no}, 'running', '${hash}', ${now}, ${now}, ${now}${seen[1]})`,
    );
    await store.run(
      `INSERT INTO worker (id, endpoint_no, version, host_no, wanted, secret_hash, created_at, started_at, ready_at${seen[0]}) VALUES ${rows.join(", ")}`,
    );
  } finally {
    await store.close();
  }
}
