import type { Endpoint } from "../domain/endpoint.js";
import { tiersOfTypes } from "../domain/gpu.js";
import { type ApiKey, maySee } from "../domain/key.js";
import type { Template } from "../domain/template.js";
import type { Volume } from "../domain/volume.js";
import { workerState } from "../domain/worker.js";
import type { Needs } from "./needs.js";

const iso = (ms: number) => new Date(ms).toISOString();

/** A template as callers see it. */
export const showTemplate = ({ id, settings }: Template) => ({
  id,
  ...settings,
  earned: 0,
  isRunpod: false,
  runtimeInMin: 0,
});

/** A volume as callers see it. */
export const showVolume = ({ id, name, size, dataCenterId }: Volume) => ({ id, name, size, dataCenterId });

/** An endpoint as callers see it; absent fields are left out. */
export function showEndpoint({ registry }: Needs<"registry">, endpoint: Endpoint) {
  const { settings } = endpoint;
  const { locations, networkVolumeIds, ...rest } = settings;
  return {
    id: endpoint.id,
    userId: registry.user(endpoint.ownerNo)?.id ?? "",
    version: endpoint.version,
    createdAt: iso(endpoint.createdAt),
    ...rest,
    ...(locations === "" ? {} : { locations }),
    networkVolumeIds,
    ...(networkVolumeIds[0] === undefined ? {} : { networkVolumeId: networkVolumeIds[0] }),
    flashboot: settings.flashBootType !== "OFF",
    gpuIds: tiersOfTypes(settings.gpuTypeIds),
  };
}

/** The workers of an endpoint that have not ended. */
export async function showWorkers({ registry, tallies }: Needs<"registry" | "tallies">, endpoint: Endpoint) {
  const held = await tallies.holdings(endpoint.no);
  return registry.workersOf(endpoint.no).map(({ row }) => ({
    id: row.id,
    endpointId: endpoint.id,
    desiredStatus: row.wanted === "stopped" ? "EXITED" : "RUNNING",
    state: workerState(row, held.get(row.no) ?? 0),
    ...(row.startedAt === undefined ? {} : { lastStartedAt: iso(row.startedAt) }),
  }));
}

/** The last scaling decisions with their inputs, newest first. */
export async function showDecisions({ decisions, clock }: Needs<"decisions" | "clock">, endpoint: Endpoint) {
  const rows = await decisions.list(endpoint.no, 500);
  return rows.map((row, at) => ({
    from: iso(row.fromAt),
    // the newest holds still
    until: iso(at === 0 ? clock.now() : row.untilAt),
    times: row.times,
    inputs: JSON.parse(row.inputs) as Record<string, unknown>,
    outcome: row.outcome,
    reason: row.reason,
  }));
}

/** Webhook deliveries of a caller's jobs with their attempts, newest first. */
export async function showDeliveries(
  { registry, deliveries }: Needs<"registry" | "deliveries">,
  caller: ApiKey,
  jobId: string | undefined,
) {
  const own = registry
    .endpoints()
    .filter((endpoint) => endpoint.ownerNo === caller.ownerNo && maySee(caller.scope, endpoint.id));
  const rows = await deliveries.list(
    own.map((endpoint) => endpoint.no),
    jobId,
    100,
  );
  return rows.map((row) => ({
    id: row.webhookId,
    jobId: row.jobId,
    url: row.url,
    state: row.state,
    ...(row.nextAt === undefined || row.state !== "pending" ? {} : { nextAttemptAt: iso(row.nextAt) }),
    attempts: row.attempts.map(({ at, status, error, durationMs }) => ({
      at: iso(at),
      ...(status === undefined ? {} : { status }),
      ...(error === undefined ? {} : { error }),
      durationMs,
    })),
  }));
}
