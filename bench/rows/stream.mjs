// A chunk's way from a handler to the reader of its stream, against a bare proxy for the same bytes.
import { join } from "node:path";
import { root } from "../../scripts/set-up.mjs";
import { entry } from "../entries.mjs";
import { startAgent } from "../processes.mjs";
import { interleave, median, quantile } from "../rounds.mjs";
import { authorized } from "./run.mjs";

const most = { must: 3, aim: 1 };

export const row = {
  name: "stream",
  words: "a streamed chunk from the handler to the reader, against a bare proxy",
  async measure({ services, databases, rounds, isQuick, onRound, scope }) {
    const ticks = { count: isQuick ? 50 : 150, everyMs: 20 };
    const reader = await startAgent(scope, "agents/stream-reader.mjs");
    const sides = {};
    for (const database of databases) {
      const server = await services.startMillrace(scope, database);
      const endpoint = await server.makeEndpoint(join(root, "bench/handlers/ticks"), { workersMin: 1, workersMax: 1 });
      await server.workersReady(endpoint, 1);
      sides[database] = async () => {
        const { id } = await server.call("POST", `/v2/${endpoint}/run`, { input: ticks });
        return reader.ask("read", { url: `${server.url}/v2/${endpoint}/stream/${id}`, headers: authorized });
      };
    }
    const proxy = await startAgent(scope, "bare/proxy.mjs");
    const proxyUrl = await proxy.ask("start");
    const ticker = await startAgent(scope, "agents/ticker.mjs");
    sides.bare = async () => {
      const read = reader.ask("read", { url: `${proxyUrl}/stream` });
      await ticker.ask("tick", { url: proxyUrl, ...ticks });
      return read;
    };
    const delays = await interleave(sides, { rounds, onRound });
    const p50 = (name) => delays[name].map((all) => quantile(all, 0.5));
    return databases.map((database) =>
      entry({
        database,
        what: `a chunk every ${ticks.everyMs} ms, from the handler to the reader of its server-sent event, p50`,
        unit: "ms",
        ours: p50(database),
        theirs: p50("bare"),
        against: "bare node:http proxy",
        figure: { value: median(p50(database)) - median(p50("bare")), unit: "ms more" },
        most,
        note: `p99 ${median(delays[database].map((all) => quantile(all, 0.99))).toFixed(1)} ms, bare ${median(delays.bare.map((all) => quantile(all, 0.99))).toFixed(1)} ms`,
      }),
    );
  },
};
