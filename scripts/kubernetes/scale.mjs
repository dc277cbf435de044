// What thousands of workers in a cluster cost: `node scripts/kubernetes/scale.mjs [ENDPOINTS [WORKERS-OF-EACH]] [--trouble]`,
// by default 300 and 7. Needs root; `npm test` must have run once.
import { runScale } from "./scale-run.mjs";

const isTroubled = process.argv.includes("--trouble");
const [endpoints = 300, workersOfEach = 7] = process.argv
  .slice(2)
  .filter((word) => /^\d+$/.test(word))
  .map(Number);

const { workers, started, memory, watchMs, jobs, idle, ended } = await runScale({
  endpoints,
  workersOfEach,
  isTroubled,
  say: console.log,
});
report("started", started);
console.log(`memory of the server: ${memory.before} MiB before, ${memory.after} MiB with ${workers} workers`);
console.log(`processor time with all of them there: ${idle.toFixed(0)} ms a second`);
if (watchMs !== undefined) console.log(`a lost watch was whole again after ${(watchMs / 1_000).toFixed(1)} s`);
if (jobs) console.log(`${jobs.all} jobs came meanwhile: all have their result, ${jobs.again} were run more than once`);
report("ended", ended);
process.exit(0);

function report(what, { seconds, cpuMs, calls }) {
  console.log(`${workers} workers ${what} in ${seconds.toFixed(0)} s: ${(workers / seconds).toFixed(0)} a second`);
  // an API server that was started again has forgotten its counts
  const shown = calls.map(([kind, n]) => `${n.toFixed(1)} × ${kind}`).join(", ");
  console.log(`  ${cpuMs.toFixed(1)} ms of the server's processor time each; calls, all clients together: ${shown}`);
}
