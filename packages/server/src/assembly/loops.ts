import { setMaxListeners } from "node:events";
import { clearDeletedLoop } from "../loops/clear-deleted.js";
import { endCallsLoop, noteUsesLoop } from "../loops/end-calls.js";
import { expireJobsLoop, timeOutJobsLoop } from "../loops/expire-jobs.js";
import { forgetEndedLoop } from "../loops/forget-ended.js";
import { keepTimeLoop } from "../loops/keep-time.js";
import { clusterLoops, type Leases, runOwned } from "../loops/leases.js";
import { type Loop, runLoop } from "../loops/loop.js";
import type { VolumeMeasuring } from "../loops/measure-volumes.js";
import { clearClusterVolumesLoop, clearPodVolumesLoop } from "../loops/pods/clear-pod-volumes.js";
import { endDuePodsLoop } from "../loops/pods/end-due-pods.js";
import { pruneLogsLoop } from "../loops/prune-logs.js";
import { scaleLoop } from "../loops/scaling/scale.js";
import { shareStateLoop } from "../loops/share-state.js";
import { clusterStockLoop, type StockTaking } from "../loops/take-stock.js";
import { meterUsageLoop } from "../loops/usage/meter-usage.js";
import { deliverWebhooksLoop } from "../loops/webhooks/deliver-webhooks.js";
import { WebhookMemory } from "../loops/webhooks/webhook-memory.js";
import { type PollOptions, pollHealthLoop } from "../loops/workers/poll-health.js";
import { type TendOptions, tendClusterLoop, tendWorkersLoop } from "../loops/workers/tend-workers.js";
import { watchWorkersLoop } from "../loops/workers/watch-workers.js";
import type { Parts } from "../operations/needs.js";
import { pruneLogs } from "../providers/log-files/pruning.js";
import type { Sender } from "../sender.js";
import type { EndpointStore, SharedStore } from "../store/index.js";
import type { ClusterHost } from "./here.js";

/** A cluster, and how its workers are tended. */
export interface TendedCluster extends ClusterHost {
  readonly look: () => Promise<boolean>;
  readonly tending: TendOptions;
}

/** What loops need beyond what operations need. */
export interface LoopParts {
  readonly tending: TendOptions;
  readonly clusters: readonly TendedCluster[];
  readonly polling: PollOptions;
  readonly sender: Sender;
  readonly stock: StockTaking;
  readonly measuring: VolumeMeasuring;
  readonly logsDir: string;
  readonly endpoints: Pick<EndpointStore, "existing">;
  readonly noteTime: () => void;
  /** Set if servers share a database: their common state, and the clock that is followed. */
  readonly shared: SharedStore | undefined;
  readonly leases: Leases | undefined;
  readonly follow: (ms: number) => void;
}

/**
 * Runs all loops. They stop in two steps: first the loops that decide, so that workers can stop undisturbed, then the
 * rest.
 */
export function runLoops(parts: Parts, given: LoopParts) {
  const { bell } = parts;
  const { shared, leases } = given;
  const deciding = new AbortController();
  const serving = new AbortController();
  setMaxListeners(0, serving.signal); // one for each loop
  const serve = (loop: Loop) => runLoop(loop, parts, serving.signal);
  /** Runs a loop on only one of the servers. */
  const own = (make: () => Loop, { signal } = serving) => runOwned(make, leases, parts, signal);

  const attempted = new WebhookMemory();
  const sharing = shared && leases && serve(shareStateLoop(parts, shared, leases, given.follow));
  const deciders = [
    own(() => scaleLoop(parts), deciding),
    own(() => deliverWebhooksLoop(parts, given.sender, attempted), deciding),
    own(() => endDuePodsLoop(parts), deciding),
  ];
  const servers = [
    serve(tendWorkersLoop(parts, given.tending)),
    ...given.clusters.flatMap((cluster) => {
      const { tend, clearVolumes } = clusterLoops(cluster.no);
      return [
        own(() => tendClusterLoop(tend, parts, cluster.tending)),
        own(() => clearClusterVolumesLoop(clearVolumes, parts, given.endpoints, cluster.volumes)),
        serve(clusterStockLoop(parts, cluster)),
      ];
    }),
    // keep watching while workers have their grace: a worker that falls silent then is lost like any other
    own(() => watchWorkersLoop(parts)),
    own(() => expireJobsLoop(parts)),
    own(() => clearDeletedLoop(parts)),
    own(() => meterUsageLoop(parts)),
    own(() => timeOutJobsLoop(parts)),
    serve(forgetEndedLoop(parts)),
    serve(endCallsLoop(parts)),
    serve(noteUsesLoop(parts)),
    serve(keepTimeLoop(given.noteTime)),
    serve(pollHealthLoop(parts, given.polling)),
    serve(
      given.stock.loop(() => {
        bell.ring("demand");
        bell.ring("workers");
      }),
    ),
    serve(given.measuring.loop()),
    serve(clearPodVolumesLoop(parts, given.endpoints)),
    serve(pruneLogsLoop(parts, (fateOf) => pruneLogs(given.logsDir, fateOf))),
  ];
  return {
    async stopDeciding(): Promise<void> {
      deciding.abort();
      await Promise.all(deciders);
      leases?.resign();
      bell.ring("hosts");
    },
    async stopServing(): Promise<void> {
      serving.abort();
      await Promise.all([...servers, sharing]);
    },
  };
}
