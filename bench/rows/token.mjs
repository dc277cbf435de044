// A chunk's way from a worker to the reader of an OpenAI stream, against a bare proxy for the same bytes.
import { entry } from "../entries.mjs";
import { startAgent } from "../processes.mjs";
import { makePuppets } from "../puppets.mjs";
import { interleave, median, quantile } from "../rounds.mjs";
import { authorized } from "./run.mjs";

const most = { must: 5, aim: 1 };

export const row = {
  name: "token",
  words: "the first token of an OpenAI stream, from the worker to its reader, against a bare proxy",
  async measure({ services, databases, rounds, isQuick, onRound, scope }) {
    const count = isQuick ? 50 : 200;
    const agent = await startAgent(scope, "agents/first-token.mjs");
    const sides = {};
    for (const database of databases) {
      const server = await services.startMillrace(scope, database);
      const puppets = await makePuppets(scope, server, 1);
      const [worker] = await puppets.addresses();
      const url = `${server.url}/v2/${puppets.endpoint}/openai/v1/chat/completions`;
      sides[database] = () => agent.ask("ours", { url, headers: authorized, worker, count });
    }
    const proxy = await startAgent(scope, "bare/proxy.mjs");
    const url = await proxy.ask("start");
    sides.bare = () => agent.ask("bare", { url, count });
    const delays = await interleave(sides, { rounds, onRound });
    const of = (name, share) => delays[name].map((all) => quantile(all, share));
    return databases.map((database) =>
      entry({
        database,
        what: "the first token of an OpenAI stream, from the worker's chunk to the reader's first byte, p50",
        unit: "ms",
        ours: of(database, 0.5),
        theirs: of("bare", 0.5),
        against: "bare node:http proxy",
        figure: { value: median(of(database, 0.5)) - median(of("bare", 0.5)), unit: "ms more" },
        most,
        note: `p99 ${median(of(database, 0.99)).toFixed(1)} ms, bare ${median(of("bare", 0.99)).toFixed(1)} ms`,
      }),
    );
  },
};
