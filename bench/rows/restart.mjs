// The time from the start of a killed server until it is ready, with a million jobs in its store.
import { setTimeout as sleep } from "node:timers/promises";
import { entry } from "../entries.mjs";
import { fill } from "../fill.mjs";
import { makeMillrace } from "../millrace.mjs";
import { makeFolder } from "../processes.mjs";
import { interleave, median } from "../rounds.mjs";
import { submissions } from "./run.mjs";

const most = { must: 2, aim: 0.5 };

export const row = {
  name: "restart",
  words: "the restart of a killed server with a million jobs",
  async measure({ services, databases, rounds, million, onRound, scope }) {
    const sides = {};
    for (const database of databases) {
      for (const [name, counts] of [
        ["empty", {}],
        ["full", { waiting: million }],
      ]) {
        onRound(`making the ${name} store, ${database}`);
        const server = await makeMillrace(scope, await services.storage(database));
        await server.start();
        const plan = await submissions(server, makeFolder(scope));
        await server.stop();
        await fill(server, plan.path.split("/")[2], counts);
        await server.start();
        sides[`${database} ${name}`] = async () => {
          await services.load({ ...plan, count: 1_000 });
          await server.kill();
          await sleep(200);
          return (await server.start({ pollMs: 2 })) / 1_000;
        };
      }
    }
    const times = await interleave(sides, { rounds, onRound });
    return databases.map((database) => {
      const ours = times[`${database} full`];
      return entry({
        database,
        what: `kill -9 with ${million.toLocaleString("en")} jobs waiting, from the start to ready`,
        unit: "s",
        ours,
        theirs: times[`${database} empty`],
        against: "an empty store",
        figure: { value: median(ours), unit: "s" },
        most,
      });
    });
  },
};
