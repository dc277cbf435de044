// The round trip of one job at a time, against BullMQ.
import { join } from "node:path";
import { root } from "../../scripts/set-up.mjs";
import { entry } from "../entries.mjs";
import { startBullmq } from "../peers/bullmq.mjs";
import { interleave, quantile } from "../rounds.mjs";
import { authorized } from "./run.mjs";

const most = { sqlite: { must: 1.5, aim: 1 }, postgres: { must: 2.5, aim: 1.5 } };

export const row = {
  name: "runsync",
  words: "/runsync of an empty handler, one at a time, against BullMQ's add and waitUntilFinished",
  peers: ["bullmq"],
  async measure({ services, databases, rounds, isQuick, onRound, scope }) {
    const count = isQuick ? 100 : 300;
    const sides = {};
    for (const database of databases) {
      const server = await services.startMillrace(scope, database);
      const endpoint = await server.makeEndpoint(join(root, "bench/handlers/concurrent"), {
        workersMin: 1,
        workersMax: 1,
      });
      await server.workersReady(endpoint, 1);
      const body = JSON.stringify({ input: { name: "bench" } });
      const plan = {
        url: `${server.url}/v2/${endpoint}/runsync`,
        headers: authorized,
        body,
        connections: 1,
        count,
        wantsTimes: true,
      };
      sides[database] = async () => (await services.load(plan)).times;
    }
    const bullmq = await startBullmq(scope, services, "runsync", { workers: 1 });
    sides.bullmq = () => bullmq.roundTrips(count);
    const times = await interleave(sides, { rounds, onRound });
    return databases.flatMap((database) =>
      [0.5, 0.99].map((share) =>
        entry({
          database,
          what: `/runsync of an empty handler, p${share * 100}`,
          unit: "ms",
          ours: times[database].map((all) => quantile(all, share)),
          theirs: times.bullmq.map((all) => quantile(all, share)),
          against: `BullMQ ${bullmq.version}`,
          most: most[database],
        }),
      ),
    );
  },
};
