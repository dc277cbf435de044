// Whole jobs a second on PostgreSQL, against the queues that store their jobs there.
import { entry } from "../entries.mjs";
import { startPostgresPeer } from "../peers/postgres-peers.mjs";
import { interleave } from "../rounds.mjs";
import { wholeJobs } from "./whole.mjs";

const peers = ["graphile-worker", "pg-boss"];
const least = { must: 2, aim: 5 };

export const row = {
  name: "whole-pg",
  words: "the same on PostgreSQL, against graphile-worker and pg-boss",
  databases: ["postgres"],
  peers,
  async measure({ services, rounds, jobs, onRound, scope }) {
    const server = await services.startMillrace(scope, "postgres");
    const sides = { postgres: await wholeJobs(services, [server], jobs) };
    const versions = {};
    for (const name of peers) {
      const peer = await startPostgresPeer(scope, services, name);
      versions[name] = `${name} ${peer.version}`;
      sides[name] = () => peer.wholeJobs(jobs);
      sides[`${name} in bulk`] = () => peer.wholeJobsInBulk(jobs);
    }
    const rates = await interleave(sides, { rounds, onRound });
    const against = (name, side, more) =>
      entry({
        database: "postgres",
        unit: "/s",
        ours: rates.postgres,
        theirs: rates[side],
        against: versions[name],
        ...more,
      });
    return peers.flatMap((name) => [
      against(name, name, { what: `whole jobs, 2 workers × 64, ${jobs} a round`, least }),
      against(name, `${name} in bulk`, { what: "the same; the peer is given 1,000 jobs a call" }),
    ]);
  },
};
