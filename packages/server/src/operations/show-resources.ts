import type { Endpoint } from "../domain/endpoints/endpoint.js";
import type { RegistryAuth } from "../domain/endpoints/registry-auth.js";
import type { Template } from "../domain/endpoints/template.js";
import { isPassed, type Volume } from "../domain/endpoints/volume.js";
import { tiersOfTypes } from "../domain/hosts/gpu.js";
import type { Needs } from "./needs.js";

/** A time as callers see it: ISO 8601. */
export const iso = (ms: number): string => new Date(ms).toISOString();

/** A template as callers see it. */
export const showTemplate = ({ id, settings: { isMountPathGiven, isInline, ...settings } }: Template) => ({
  id,
  ...settings,
  earned: 0,
  isRunpod: false,
  runtimeInMin: 0,
});

/** A volume as callers see it, with its disk use as last measured here. */
export function showVolume({ here }: Needs<"here">, volume: Volume) {
  const { id, name, size, dataCenterId } = volume;
  const { use: uses, bounds } = here.volumes;
  const use = uses.get(id);
  const bound = bounds.get(id);
  const isEnforced = bound && size > 0 ? { sizeEnforced: bound.why === undefined } : {};
  const shown = { id, name, size, dataCenterId, ...isEnforced };
  if (!use) return shown;
  const partly = use.isWhole ? {} : { usedAtLeast: true };
  return { ...shown, usedBytes: use.bytes, usedAt: iso(use.at), sizePassed: isPassed(volume, use), ...partly };
}

/** Credentials as callers see them: without the user name and password. */
export const showRegistryAuth = ({ id, name }: RegistryAuth) => ({ id, name });

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

/** The last scaling decisions with their inputs, newest first. */
export async function showDecisions({ decisions, clock }: Needs<"decisions" | "clock">, endpoint: Endpoint) {
  const rows = await decisions.list(endpoint.no, 500);
  return rows.map((row, at) => ({
    from: iso(row.fromAt),
    // the newest decision still holds
    until: iso(at === 0 ? clock.now() : row.untilAt),
    times: row.times,
    inputs: JSON.parse(row.inputs) as Record<string, unknown>,
    outcome: row.outcome,
    reason: row.reason,
  }));
}
