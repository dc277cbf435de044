import type { Signal } from "../../clock.js";
import type { Scope } from "../../domain/access/key.js";
import type { Endpoint } from "../../domain/endpoints/endpoint.js";
import { gateReason } from "../../domain/scaling/gate-reason.js";
import { type Worker, workerState } from "../../domain/workers/worker.js";
import { mayDial, readAddress, type WorkerAddress } from "../../domain/workers/worker-address.js";
import { endpointNotFound, Refusal } from "../../errors.js";
import { limits } from "../../limits/index.js";
import type { Found } from "../../lines/gate-line.js";
import { startAmong } from "../../memory/live-workers.js";
import { refuseWhileDraining } from "../access/authenticate.js";
import { obstacle, whyThrottled } from "../jobs/read-job.js";
import type { Needs } from "../needs.js";
import { crashPause } from "./crash-pause.js";

type Finding = Needs<"gate" | "registry" | "here" | "clock" | "draining">;

export interface Search {
  /** What the key of the request sees: a refusal names nothing else. */
  readonly scope: Scope;
  readonly isSocket: boolean;
  /** Workers that have failed this request. */
  readonly tried?: ReadonlySet<number>;
  /** When the request gives up. */
  readonly untilAt: number;
  readonly gone: Signal;
}

/**
 * Finds a worker, or a server that has one, for a request that found none at once. Waits, and refuses with the reason
 * if none comes.
 */
export async function findWorker(needs: Finding, endpoint: Endpoint, search: Search): Promise<Found> {
  const { scope, isSocket, tried, untilAt, gone } = search;
  const why = reason(needs, endpoint, scope);
  if (why.isHopeless) throw refused(why.sentence, hopelessRetrySeconds);
  if (needs.gate.isFull(endpoint.no))
    throw refused(`${limits.gateWaitingMax} requests are already waiting for a worker.`, soonRetrySeconds);
  const ms = Math.max(0, untilAt - needs.clock.now());
  const found = await needs.gate.stand(endpoint.no, { ms, isSocket, tried, signals: [gone, needs.draining] });
  if (found) return found;
  refuseWhileDraining(needs.draining);
  if (needs.registry.endpointByNo(endpoint.no)?.deletedAt !== undefined) throw endpointNotFound(endpoint.id);
  throw refused(reason(needs, endpoint, scope).sentence, soonRetrySeconds);
}

const hopelessRetrySeconds = 60;
const soonRetrySeconds = 5;
const refused = (sentence: string, retryAfterSeconds: number) =>
  new Refusal("NO_WORKER", `No worker could take the request: ${sentence}`, { retryAfterSeconds });

function reason(needs: Finding, endpoint: Endpoint, scope: Scope) {
  const now = needs.registry.endpointByNo(endpoint.no) ?? endpoint; // it may have been changed meanwhile
  const workers = needs.registry.workersOf(endpoint.no);
  return gateReason({
    endpoint: now,
    states: workers.map(({ row }) => workerState(row, needs.gate.heldBy(row.no))),
    pause: crashPause(needs, now),
    isOutOfReach: workers.every(({ row }) => !dialled(row, needs.here.hostNo)),
    ...startAmong(workers),
    throttled: whyThrottled(workers, scope),
    obstacle: obstacle(needs, now)?.detail,
  });
}

/** Where this host reaches a worker; undefined if it cannot. */
export function dialled(row: Worker, hostNo: number): WorkerAddress | undefined {
  const address = readAddress(row.address);
  const isOwn = row.hostNo === hostNo;
  const network = row.handle?.network;
  if (!address || !mayDial(address, isOwn, network)) return undefined;
  // a worker on this machine's network is local, whatever address others use for this machine
  return isOwn && !network ? { ...address, host: "127.0.0.1" } : address;
}
