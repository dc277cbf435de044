import { topics } from "../bell.js";
import { type Endpoint, type EndpointSettings, needsRelease } from "../domain/endpoint.js";
import { type ApiKey, maySee } from "../domain/key.js";
import { endpointNotFound, invalid, Refusal } from "../errors.js";
import { announceEnd, cancelWaiting, endpointDeleted, ringStops } from "./change-job.js";
import { type EndpointInput, mergeSettings } from "./endpoint-settings.js";
import type { Needs } from "./needs.js";
import { closeWorker } from "./worker-life.js";

type Saving = Needs<"registry" | "place" | "clock" | "ids" | "bell" | "emit">;
type Deleting = Saving & Needs<"jobs" | "reader" | "tallies">;

/** Whether a key sees this endpoint: its owner's, within its scope, and not deleted. */
export const isVisible = (caller: ApiKey, endpoint: Endpoint): boolean =>
  endpoint.deletedAt === undefined && endpoint.ownerNo === caller.ownerNo && maySee(caller.scope, endpoint.id);

/** Another user's endpoint answers exactly like an unknown one. */
export function ownEndpoint({ registry }: Needs<"registry">, caller: ApiKey, id: string): Endpoint {
  const endpoint = registry.endpoint(id);
  if (!endpoint || !isVisible(caller, endpoint)) throw endpointNotFound(id);
  return endpoint;
}

export function createEndpoint(needs: Saving, caller: ApiKey, input: EndpointInput): Promise<Endpoint> {
  return needs.registry.exclusively(async () => {
    const settings = mergeSettings(needs, caller, undefined, input);
    if (settings.type === "LB") {
      throw invalid("Load-balancing endpoints (type LB) are not offered by this version; use QB.");
    }
    const made = { id: needs.ids.resource(), ownerNo: caller.ownerNo, settings, createdAt: needs.clock.now() };
    const endpoint = await needs.registry.createEndpoint(made);
    needs.bell.ring("demand");
    return endpoint;
  });
}

/** Changes only what was sent. What a worker is made of makes a new version; any save ends crash-loop pauses. */
export async function updateEndpoint(
  needs: Saving,
  caller: ApiKey,
  endpoint: Endpoint,
  input: EndpointInput,
): Promise<Endpoint> {
  return needs.registry.exclusively(async () => {
    const current = ownEndpoint(needs, caller, endpoint.id);
    const settings = mergeSettings(needs, caller, current.settings, input);
    return saveAndRelease(needs, current, settings, needsRelease(current.settings, settings));
  });
}

/** Saves; when this resolves no worker that is to go gets another job. */
export async function saveAndRelease(
  needs: Needs<"registry" | "clock" | "bell" | "emit">,
  endpoint: Endpoint,
  settings: EndpointSettings,
  release: boolean,
): Promise<Endpoint> {
  const saved = await needs.registry.saveEndpoint(endpoint, settings, release);
  const why = settings.workersMax === 0 ? "workersMax is 0" : `version ${saved.version} replaces it`;
  for (const worker of needs.registry.workersOf(endpoint.no)) {
    if (settings.workersMax === 0 || worker.row.version !== saved.version) await closeWorker(needs, worker, why);
  }
  needs.bell.ring(topics.demand(endpoint.no));
  return saved;
}

/** Deletes an endpoint (contract: only when workersMin and workersMax are 0; `/sdk` sets them first). */
export async function deleteEndpoint(
  needs: Deleting,
  endpoint: Endpoint,
  options: { setToZero: boolean },
): Promise<void> {
  await needs.registry.exclusively(async () => {
    const current = needs.registry.endpointByNo(endpoint.no);
    if (!current || current.deletedAt !== undefined) throw endpointNotFound(endpoint.id);
    const { workersMin, workersMax } = current.settings;
    if (!options.setToZero && (workersMin !== 0 || workersMax !== 0)) {
      throw new Refusal("IN_USE", "Set workersMin and workersMax to 0 before deleting the endpoint.");
    }
    await needs.registry.removeEndpoint(current, needs.clock.now());
  });
  await clearEndpoint(needs, endpoint.no);
}

/** Cancels the unfinished jobs of a deleted endpoint; its workers are stopped by the scaler. Goes on after a restart. */
export async function clearEndpoint(needs: Deleting, endpointNo: number): Promise<void> {
  const error = endpointDeleted;
  needs.bell.ring(topics.demand(endpointNo));
  await cancelWaiting(needs, endpointNo, error);
  for (const no of (await needs.tallies.holdings(endpointNo)).keys()) {
    for (const held of await needs.reader.heldBy(no)) {
      if (held.stopWanted) continue;
      const ended = await needs.jobs.change(held, { by: "cancel", error }, needs.clock.now());
      if (ended) announceEnd(needs, endpointNo, ended);
      ringStops(needs, no);
    }
  }
  // a job that was given back meanwhile waits again
  await cancelWaiting(needs, endpointNo, error);
}
