// Workers in a Kubernetes cluster: what a server needs for each, and what trouble with the API server costs.
import { runScale } from "../../scripts/kubernetes/scale-run.mjs";
import { entry, unmeasured } from "../entries.mjs";

const endpoints = 300;
const workersOfEach = 7;
const [database] = ["sqlite"];

export const row = {
  name: "cluster",
  databases: [database],
  words: "2,100 workers in a Kubernetes cluster with simulated nodes: starts, processor time, memory, trouble",
  async measure({ onRound, isQuick }) {
    if (process.getuid?.() !== 0) return [unmeasured(database, "workers in a Kubernetes cluster", "it needs root")];
    const size = isQuick ? { endpoints: 10, workersOfEach } : { endpoints, workersOfEach };
    const calm = await runScale({ ...size, say: onRound });
    const troubled = await runScale({ ...size, isTroubled: true, say: onRound });
    const { workers, started, memory } = calm;
    const line = (what, unit, value, bounds = {}) =>
      entry({ database, what, unit, ours: [value], figure: { value, unit }, ...bounds });
    const made = started.calls
      .filter(([kind]) => /^POST (pods|secrets)$/.test(kind))
      .reduce((sum, [, n]) => sum + n, 0);
    return [
      line(`starts of ${workers} workers in a cluster`, "a second", workers / started.seconds, {
        least: { must: 10, aim: 20 },
      }),
      line("processor time of the server for one start there", "ms", started.cpuMs, { most: { must: 30, aim: 20 } }),
      line("its calls that make something, for one start", "calls", made, { most: { must: 2.2, aim: 2.1 } }),
      line("its memory for each of those workers", "KiB", ((memory.after - memory.before) * 1_024) / workers, {
        most: { must: 512, aim: 256 },
      }),
      line("the same starts, the API server killed and hung meanwhile", "s", troubled.started.seconds),
      line("a watch lost with the API server is whole again", "s", troubled.watchMs / 1_000, {
        most: { must: 30, aim: 10 },
      }),
    ];
  },
};
