// Reads of finished jobs a second, against a bare HTTP server.
import { join } from "node:path";
import { root } from "../../scripts/set-up.mjs";
import { entry } from "../entries.mjs";
import { reach, startAgent } from "../processes.mjs";
import { interleave } from "../rounds.mjs";
import { authorized, loadNote } from "./run.mjs";

const least = { sqlite: { must: 0.5, aim: 0.8 }, postgres: { must: 0.3, aim: 0.5 } };
const jobs = 500;

export const row = {
  name: "status",
  words: "/status of finished jobs a second, against a bare HTTP server",
  async measure({ services, databases, rounds, seconds, onRound, scope }) {
    const sides = {};
    let answer;
    for (const database of databases) {
      const server = await services.startMillrace(scope, database);
      const { paths, example } = await finishedJobs(server);
      answer = JSON.stringify(example);
      sides[database] = () =>
        services.load({ url: server.url, method: "GET", paths, headers: authorized, connections: 64, seconds });
    }
    const bare = await startAgent(scope, "bare/server.mjs");
    const url = await bare.ask("start", answer);
    sides.bare = () =>
      services.load({ url: `${url}/status`, method: "GET", headers: authorized, connections: 64, seconds });
    const counted = await interleave(sides, { rounds, onRound });
    return databases.map((database) =>
      entry({
        database,
        what: `/status of ${jobs} finished jobs, 64 connections`,
        unit: "/s",
        ours: counted[database].map(({ perSecond }) => perSecond),
        theirs: counted.bare.map(({ perSecond }) => perSecond),
        against: "bare node:http",
        least: least[database],
        note: loadNote(counted[database], counted.bare),
      }),
    );
  },
};

/** Runs jobs to their end, and then lets their worker end. The jobs are kept for half an hour, like jobs of /run. */
async function finishedJobs(server) {
  const endpoint = await server.makeEndpoint(join(root, "bench/handlers/concurrent"), { workersMin: 1, workersMax: 1 });
  const submitted = [];
  for (let n = 0; n < jobs; n++) submitted.push(await server.call("POST", `/v2/${endpoint}/run`, { input: { n } }));
  await reach("the end of the jobs", async () => (await server.health(endpoint)).jobs.completed === jobs);
  await server.call("PATCH", `/v1/endpoints/${endpoint}`, { workersMin: 0, workersMax: 0 });
  const paths = submitted.map(({ id }) => `/v2/${endpoint}/status/${id}`);
  return { paths, example: await server.call("GET", paths[0]) };
}
