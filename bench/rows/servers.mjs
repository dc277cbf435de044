// Whole jobs a second through two servers on one database, against one server.
import { availableParallelism } from "node:os";
import { entry } from "../entries.mjs";
import { interleave } from "../rounds.mjs";
import { wholeJobs } from "./whole.mjs";

const least = { must: 1, aim: 1.6 };
const sealKey = "0123456789abcdef".repeat(4);

export const row = {
  name: "servers",
  words: "whole jobs a second through two servers on one PostgreSQL, against one server",
  databases: ["postgres"],
  async measure({ services, rounds, jobs, onRound, scope }) {
    const sides = {};
    for (const [name, count] of [
      ["one", 1],
      ["two", 2],
    ]) {
      const databaseUrl = await services.database("millrace");
      const servers = [];
      for (let n = 0; n < count; n++) {
        servers.push(
          await services.startMillrace(scope, "postgres", { databaseUrl, env: { MILLRACE_SEAL_KEY: sealKey } }),
        );
      }
      sides[name] = await wholeJobs(services, servers, jobs);
    }
    const rates = await interleave(sides, { rounds, onRound });
    return [
      entry({
        database: "postgres",
        what: `whole jobs through two servers, 2 workers × 64, on ${availableParallelism()} cores in all`,
        unit: "/s",
        ours: rates.two,
        theirs: rates.one,
        against: "one server",
        least,
      }),
    ];
  },
};
