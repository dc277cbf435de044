import { type Endpoint, servingVersion } from "../../domain/endpoints/endpoint.js";
import type { ScaleInputs } from "../../domain/scaling/scale-inputs.js";
import { isFrozen, workerState } from "../../domain/workers/worker.js";
import { obstacle } from "../jobs/read-job.js";
import type { Needs } from "../needs.js";
import { fitting } from "../workers/place-worker.js";
import { stillStopping } from "../workers/still-stopping.js";
import type { StartRoom } from "./start-room.js";

/** The scaler's inputs, as of now. */
export async function scaleInputs(
  needs: Needs<"tallies" | "registry" | "reader" | "here" | "clock">,
  endpoint: Endpoint,
  now: number,
  room: StartRoom,
): Promise<ScaleInputs> {
  const [tally, oldestAt, held] = [
    await needs.tallies.tally(endpoint.no),
    await needs.tallies.oldestWaiting(endpoint.no),
    await needs.tallies.holdings(endpoint.no),
  ];
  const live = needs.registry.workersOf(endpoint.no);
  const slots = needs.registry.slots(endpoint);
  // a worker that still runs a stopped job cannot take a waiting one
  const isAsked = tally.waitingNormal > 0 && slots === 1;
  const rows = isAsked ? live.map(({ row }) => row) : [];
  const stopping = await stillStopping(needs, rows, held);
  const workers = live.map(({ row, busyAt }) => ({
    no: row.no,
    state: stopping.has(row.no) ? ("running" as const) : workerState(row, held.get(row.no) ?? 0),
    held: held.get(row.no) ?? 0,
    version: row.version,
    isUnfreezable: row.handle?.isUnfreezable ?? false,
    idleSince: (isFrozen(row) ? row.pausedAt : undefined) ?? Math.max(busyAt, row.readyAt ?? row.createdAt),
  }));
  const { waiting, waitingNormal, running } = tally;
  const { settings, failedStarts, failedAt } = endpoint;
  const version = servingVersion(endpoint);
  const isImpossible = obstacle(needs, endpoint) !== undefined;
  return {
    settings: isImpossible ? { ...settings, workersMax: 0, workersMin: 0 } : settings,
    version,
    demand: { waiting, waitingNormal, running, oldestAt },
    workers,
    slots,
    failedStarts,
    failedAt,
    // needed only while one version replaces another
    fitsWithout: workers.some((worker) => worker.version !== version) ? await fitting(needs, endpoint) : () => true,
    mayStart: () => room.left(endpoint),
    flashBootMs: needs.here.flashBootMs,
    now,
  };
}
