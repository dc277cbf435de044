// How the clean-up of a million expired jobs affects other requests, seen in the answers of /healthz.
import { setTimeout as sleep } from "node:timers/promises";
import { entry } from "../entries.mjs";
import { fill, openStore } from "../fill.mjs";
import { makeMillrace } from "../millrace.mjs";
import { makeFolder, reach, startAgent } from "../processes.mjs";
import { quantile } from "../rounds.mjs";

const most = { must: 50, aim: 10 };
const everyMs = 10;
const windowMs = 2_000;

export const row = {
  name: "cleanup",
  words: "answers of /healthz while a million expired jobs are cleaned up",
  async measure({ services, databases, million, isQuick, onRound, scope }) {
    const entries = [];
    const prober = await startAgent(scope, "agents/prober.mjs");
    for (const database of databases) {
      onRound(`filling, ${database}`);
      const server = await makeMillrace(scope, await services.storage(database));
      await server.start();
      const endpoint = await server.makeEndpoint(makeFolder(scope), { workersMax: 0 });
      const probe = { url: `${server.url}/healthz`, everyMs };
      await prober.ask("begin", probe);
      await sleep(isQuick ? 2_000 : 10_000);
      const idle = await prober.ask("end");
      await server.stop();
      await fill(server, endpoint, { expired: million });
      await server.start();
      onRound(`cleaning up, ${database}`);
      const beganAt = performance.now();
      await prober.ask("begin", probe);
      await untilClean(server);
      const seconds = (performance.now() - beganAt) / 1_000;
      const busy = await prober.ask("end");
      await server.stop();
      const p99 = quantile(
        busy.map(({ ms }) => ms),
        0.99,
      );
      entries.push(
        entry({
          database,
          what: `/healthz every ${everyMs} ms during the clean-up of ${million.toLocaleString("en")} jobs, p99 (of each 2 s)`,
          unit: "ms",
          ours: windows(busy),
          theirs: windows(idle),
          against: "with nothing to clean up",
          figure: { value: p99, unit: "ms" },
          most,
          note: `${Math.round(million / seconds)} jobs a second were cleaned up; the slowest answer took ${Math.max(...busy.map(({ ms }) => ms)).toFixed(0)} ms`,
        }),
      );
    }
    return entries;
  },
};

async function untilClean(server) {
  const store = await openStore(server);
  try {
    const left = `SELECT 1 FROM job WHERE expires_at <= ${Date.now()} AND stop_wanted = 0 LIMIT 1`;
    await reach("a clean store", async () => (await store.run(left)).length === 0, { withinMs: 900_000, everyMs: 500 });
  } finally {
    await store.close();
  }
}

/** The 99th percentile of each period. */
function windows(times) {
  const byWindow = new Map();
  for (const { at, ms } of times) {
    const window = Math.floor(at / windowMs);
    byWindow.set(window, [...(byWindow.get(window) ?? []), ms]);
  }
  return [...byWindow.values()].map((all) => quantile(all, 0.99));
}
