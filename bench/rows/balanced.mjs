// Requests through the gateway to a worker's own HTTP server, against nginx in front of the same worker.
import { join } from "node:path";
import { root } from "../../scripts/set-up.mjs";
import { entry } from "../entries.mjs";
import { startNginx } from "../nginx.mjs";
import { freePort } from "../processes.mjs";
import { interleave, median, quantile } from "../rounds.mjs";
import { authorized, loadNote } from "./run.mjs";

const connections = 64;

/** The request of every round. */
const greeting = { method: "GET", headers: authorized, wantsTimes: true };

/** The load of one round on the gateway alone. */
export const balancedRequests = async (server) => ({
  ...greeting,
  connections,
  url: (await balancedWorker(server)).url,
});

/** One worker that listens on a free port. Resolves with its own address, and its address through the gateway. */
async function balancedWorker(server) {
  const port = await freePort();
  const folder = join(root, "bench/handlers/balanced");
  const endpoint = await server.makeEndpoint(
    folder,
    { type: "LB", workersMin: 1, workersMax: 1, scalerType: "REQUEST_COUNT", scalerValue: 1_000_000 },
    { dockerStartCmd: ["node", "worker.mjs"], env: { PORT: String(port) } },
  );
  await server.workersReady(endpoint, 1);
  return { port, url: `${server.url}/lb/${endpoint}/greet` };
}

export const row = {
  name: "balanced",
  words: "load-balanced requests a second, against nginx in front of the same worker",
  databases: ["sqlite"],
  async measure({ services, rounds, seconds, isQuick, onRound, scope }) {
    const { port, url } = await balancedWorker(await services.startMillrace(scope, "sqlite"));
    const targets = {
      ours: url,
      nginx: `${await startNginx(scope, `127.0.0.1:${port}`)}/greet`,
      direct: `http://127.0.0.1:${port}/greet`,
    };
    const sidesOf = (names, more) =>
      Object.fromEntries(
        names.map((name) => [name, () => services.load({ ...greeting, ...more, url: targets[name] })]),
      );
    const many = await interleave(sidesOf(["ours", "nginx"], { connections, seconds }), { rounds, onRound });
    const single = { connections: 1, count: isQuick ? 500 : 3_000 };
    const one = await interleave(sidesOf(["ours", "nginx", "direct"], single), { rounds, onRound });
    const rates = (loads) => loads.map(({ perSecond }) => perSecond);
    const shares = (loads, share) => loads.map(({ times }) => quantile(times, share));
    const added = (loads) => median(shares(loads, 0.5)) - median(shares(one.direct, 0.5));
    const against = "nginx";
    return [
      entry({
        database: "sqlite",
        what: `GET through the gateway, ${connections} connections`,
        unit: "/s",
        ours: rates(many.ours),
        theirs: rates(many.nginx),
        against,
        least: { must: 0.35, aim: 0.7 },
        note: loadNote(many.ours, many.nginx),
      }),
      entry({
        database: "sqlite",
        what: `GET through the gateway, ${connections} connections, p99`,
        unit: "ms",
        ours: shares(many.ours, 0.99),
        theirs: shares(many.nginx, 0.99),
        against,
      }),
      entry({
        database: "sqlite",
        what: "GET through the gateway, one at a time, p50: what it adds to the worker alone",
        unit: "ms",
        ours: shares(one.ours, 0.5),
        theirs: shares(one.direct, 0.5),
        against: "the worker alone",
        figure: { value: added(one.ours), unit: "ms" },
        most: { must: 1 },
        note: `nginx adds ${added(one.nginx).toFixed(3)} ms`,
      }),
    ];
  },
};
