// Whole jobs a second: submitted, taken, run, finished, with their final state stored; against BullMQ.
import { join } from "node:path";
import { root } from "../../scripts/set-up.mjs";
import { entry } from "../entries.mjs";
import { startBullmq } from "../peers/bullmq.mjs";
import { reach } from "../processes.mjs";
import { interleave } from "../rounds.mjs";
import { authorized } from "./run.mjs";

const least = { sqlite: { must: 0.6, aim: 1.5 }, postgres: { must: 0.4, aim: 1 } };

export const row = {
  name: "whole",
  words: "whole jobs a second, against BullMQ on Redis",
  peers: ["bullmq"],
  async measure({ services, databases, rounds, jobs, onRound, scope }) {
    const sides = {};
    for (const database of databases) {
      sides[database] = await wholeJobs(services, [await services.startMillrace(scope, database)], jobs);
    }
    const bullmq = await startBullmq(scope, services, "whole");
    sides.bullmq = () => bullmq.wholeJobs(jobs);
    const rates = await interleave(sides, { rounds, onRound });
    return databases.map((database) =>
      entry({
        database,
        what: `whole jobs, 2 workers × 64, ${jobs} a round`,
        unit: "/s",
        ours: rates[database],
        theirs: rates.bullmq,
        against: `BullMQ ${bullmq.version}`,
        least: least[database],
      }),
    );
  },
};

/**
 * An endpoint with two warm workers of our SDK. A round submits `count` jobs over 64 connections, divided among the
 * servers, and resolves with jobs per second until the last was done.
 */
export async function wholeJobs(services, servers, count) {
  const [first] = servers;
  const endpoint = await first.makeEndpoint(join(root, "bench/handlers/concurrent"), { workersMin: 2, workersMax: 2 });
  await first.workersReady(endpoint, 2);
  const plans = servers.map((server) => ({
    url: `${server.url}/v2/${endpoint}/run`,
    headers: authorized,
    body: JSON.stringify({ input: { name: "bench" } }),
    connections: 64 / servers.length,
    count: count / servers.length,
  }));
  const completed = async () => (await first.health(endpoint)).jobs.completed;
  return async () => {
    const before = await completed();
    const beganAt = performance.now();
    const done = reach("the end of the jobs", async () => (await completed()) >= before + count);
    await Promise.all([done, ...plans.map((plan) => services.load(plan))]);
    return (count / (performance.now() - beganAt)) * 1_000;
  };
}
