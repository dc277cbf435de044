import { type Endpoint, servingVersion } from "../../domain/endpoints/endpoint.js";
import { workerState } from "../../domain/workers/worker.js";
import { limits } from "../../limits/index.js";
import type { LiveWorker } from "../../memory/registry.js";
import { obstacle } from "../jobs/read-job.js";
import type { Needs } from "../needs.js";

/** An endpoint's counts (contract: Health result). Costs the same with a million jobs waiting. */
export async function readHealth(needs: Needs<"tallies" | "registry" | "here" | "clock" | "gate">, endpoint: Endpoint) {
  const tally = await needs.tallies.tally(endpoint.no);
  const held = await needs.tallies.holdings(endpoint.no);
  const states = needs.registry.workersOf(endpoint.no).map(({ row }) => workerState(row, held.get(row.no) ?? 0));
  const holding = needs.registry.workersOf(endpoint.no).filter(({ row }) => (held.get(row.no) ?? 0) > 0).length;
  const count = (state: string) => states.filter((each) => each === state).length;
  const troubled = needs.registry.workersOf(endpoint.no).filter(({ row }) => row.trouble !== undefined).length;
  const isHeld = servingVersion(endpoint) !== endpoint.version;
  const failing = endpoint.failedStarts > 0 && count("idle") + holding === 0;
  const starting = count("starting");
  return {
    jobs: {
      completed: tally.completed,
      failed: tally.failed,
      // the scaler sees the recent peak, people see the current number
      inProgress: endpoint.settings.type === "LB" ? needs.gate.loadOf(endpoint.no).inFlight : tally.running,
      inQueue: tally.waiting,
      retried: tally.retried,
    },
    workers: {
      idle: count("idle"),
      running: holding,
      initializing: starting,
      ready: count("idle") + holding,
      throttled: obstacle(needs, endpoint) && tally.waiting > 0 ? 1 : count("throttled"),
      unhealthy: failing && starting === 0 ? 1 : Math.max(troubled, isHeld ? 1 : 0),
      paused: count("paused"),
    },
  };
}

/** An endpoint's counts, with the ids of the workers that are ready. */
export async function readMetrics(needs: Parameters<typeof readHealth>[0], endpoint: Endpoint) {
  const health = await readHealth(needs, endpoint);
  const held = await needs.tallies.holdings(endpoint.no);
  const isReady = ({ row }: LiveWorker) =>
    (held.get(row.no) ?? 0) > 0 || workerState(row, held.get(row.no) ?? 0) === "idle";
  const ready = needs.registry.workersOf(endpoint.no).filter(isReady);
  return { ...health, readyWorkers: ready.slice(0, limits.readyWorkersShown).map(({ row }) => row.id) };
}
