// Submissions, takes and results in a store with millions of jobs, against an empty one.
import { entry } from "../entries.mjs";
import { fill } from "../fill.mjs";
import { makeMillrace } from "../millrace.mjs";
import { startAgent } from "../processes.mjs";
import { makePuppets } from "../puppets.mjs";
import { interleave } from "../rounds.mjs";
import { authorized, body } from "./run.mjs";

const least = { must: 0.85, aim: 1 };

export const row = {
  name: "full",
  words: "submissions, takes and results among millions of jobs, against an empty store",
  async measure({ services, databases, rounds, jobs, million, onRound, scope }) {
    const taker = await startAgent(scope, "agents/taker.mjs");
    const sides = {};
    for (const database of databases) {
      for (const [name, counts] of [
        ["empty", {}],
        ["full", { finished: million, waiting: million }],
      ]) {
        onRound(`making the ${name} store, ${database}`);
        const { server, endpoint, workers } = await preparedStore(scope, services, database, counts);
        const plan = {
          url: `${server.url}/v2/${endpoint}/run`,
          headers: authorized,
          body,
          connections: 64,
          count: jobs,
        };
        sides[`${database} ${name}`] = async () => {
          const { perSecond: submit } = await services.load(plan);
          const drain = await taker.ask("drain", { workers, count: jobs, batch: 64 });
          return { submit, drain, whole: 1 / (1 / submit + 1 / drain) };
        };
      }
    }
    const rates = await interleave(sides, { rounds, onRound });
    const amount = `${million.toLocaleString("en")} waiting and as many finished`;
    const parts = {
      whole: `/run, then take and done, with ${amount}`,
      submit: "of that, /run",
      drain: "of that, take and done, 2 workers × 64",
    };
    return databases.flatMap((database) =>
      Object.entries(parts).map(([part, what]) =>
        entry({
          database,
          what,
          unit: "/s",
          ours: rates[`${database} full`].map((each) => each[part]),
          theirs: rates[`${database} empty`].map((each) => each[part]),
          against: "an empty store",
          ...(part === "whole" ? { least } : {}),
        }),
      ),
    );
  },
};

async function preparedStore(scope, services, database, counts) {
  const server = await makeMillrace(scope, await services.storage(database));
  await server.start();
  const puppets = await makePuppets(scope, server, 2);
  await puppets.addresses();
  puppets.forget();
  await server.stop();
  await fill(server, puppets.endpoint, counts);
  await server.start();
  return { server, endpoint: puppets.endpoint, workers: await puppets.addresses() };
}
