// Durable submissions a second, against a bare HTTP server.
import { entry } from "../entries.mjs";
import { key } from "../millrace.mjs";
import { makeFolder, startAgent } from "../processes.mjs";
import { interleave } from "../rounds.mjs";

export const body = JSON.stringify({ input: { prompt: "a small input", steps: 20, seed: 7 } });
const least = { sqlite: { must: 0.45, aim: 0.7 }, postgres: { must: 0.3, aim: 0.5 } };

export const row = {
  name: "run",
  words: "durable /run a second, against a bare HTTP server",
  async measure({ services, databases, rounds, seconds, onRound, scope }) {
    const sides = {};
    let answer;
    for (const database of databases) {
      const server = await services.startMillrace(scope, database);
      const plan = await submissions(server, makeFolder(scope));
      answer = JSON.stringify(await server.call("POST", plan.path, JSON.parse(body)));
      sides[database] = () => services.load({ ...plan, seconds });
    }
    const bare = await startAgent(scope, "bare/server.mjs");
    const url = await bare.ask("start", answer);
    sides.bare = () => services.load({ url: `${url}/run`, headers: authorized, body, connections: 64, seconds });
    const counted = await interleave(sides, { rounds, onRound });
    return databases.map((database) =>
      entry({
        database,
        what: "durable /run, 64 connections",
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

export const authorized = { authorization: `Bearer ${key}` };

/** The load generator's plan for an endpoint without workers. */
export async function submissions(server, folder) {
  const endpoint = await server.makeEndpoint(folder, { workersMax: 0 });
  const path = `/v2/${endpoint}/run`;
  return { url: server.url + path, path, headers: authorized, body, connections: 64 };
}

/** How busy the load generator was: near one core, the row would measure the generator. */
export function loadNote(ours, theirs) {
  const busiest = (all) => Math.max(...all.map(({ cores }) => cores)).toFixed(2);
  return `the load generator used ${busiest(ours)} of a core with us, ${busiest(theirs)} with the other side`;
}
