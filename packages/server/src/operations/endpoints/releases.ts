import type { ApiKey } from "../../domain/access/key.js";
import { type Endpoint, type EndpointSettings, madeOf, servingVersion } from "../../domain/endpoints/endpoint.js";
import type { Release } from "../../domain/endpoints/release.js";
import { invalid, Refusal } from "../../errors.js";
import { auditing } from "../../store/audit.js";
import { type Caller, changeAs } from "../access/change-as.js";
import { namesAlone } from "../access/visible.js";
import { checkKept } from "../check-kept.js";
import { whyThrottled } from "../jobs/read-job.js";
import type { Needs } from "../needs.js";
import { iso, showEndpoint } from "../show-resources.js";
import { stopWorker } from "../workers/worker-life.js";
import { ownEndpoint, saveAndRelease } from "./save-endpoint.js";

type Releasing = Needs<"registry" | "clock" | "bell" | "emit" | "tallies" | "reader" | "here">;

/** A version's progress, as callers see it. */
function stateOf(endpoint: Endpoint, release: Release, others: readonly number[]): string {
  const serving = servingVersion(endpoint);
  if (release.n === endpoint.version && serving !== release.n) return "stopped";
  if (release.n !== serving) return "past";
  if (release.provenAt === undefined && endpoint.provenVersion !== release.n) return "unproven";
  return others.some((version) => version !== release.n) ? "rolling" : "current";
}

/**
 * One version of an endpoint: what it is made of, and how it went. Undefined if it is no longer kept. A version holds
 * whole environments, so lists are read one version at a time.
 */
export async function showRelease({ registry }: Needs<"registry">, caller: ApiKey, endpoint: Endpoint, n: number) {
  const release = await registry.release(endpoint.no, n);
  if (!release) return undefined;
  const workers = registry.workersOf(endpoint.no);
  const live = workers.map(({ row }) => row.version);
  const own = workers.filter(({ row }) => row.version === n);
  return {
    version: n,
    madeAt: iso(release.madeAt),
    state: stateOf(endpoint, release, live),
    workers: own.length,
    imageName: release.template.imageName,
    templateId: release.settings.templateId,
    env: envFor(registry, caller, release),
    dockerEntrypoint: release.template.dockerEntrypoint,
    dockerStartCmd: release.template.dockerStartCmd,
    gpuTypeIds: release.settings.gpuTypeIds,
    gpuCount: release.settings.gpuCount,
    computeType: release.settings.computeType,
    ...(release.rollbackOf === undefined ? {} : { rollbackOf: release.rollbackOf }),
    ...(release.provenAt === undefined ? {} : { provenAt: iso(release.provenAt) }),
    ...whyNot(release, whyThrottled(own, caller.scope)),
  };
}

/**
 * A version's environment. Its values are shown only to keys with access to everything, and a template's values only to
 * the template's owner. Other keys see the variables' names.
 */
function envFor(registry: Releasing["registry"], caller: ApiKey, { template, settings }: Release) {
  const isTheirs = registry.template(settings.templateId)?.ownerNo === caller.ownerNo;
  const shown = (env: Readonly<Record<string, string>>, isShown: boolean) => (isShown ? env : namesAlone(env));
  const isAll = caller.scope.kind === "everything";
  return { ...shown(template.env, isAll && isTheirs), ...shown(settings.env, isAll) };
}

/** Why a version makes no progress: its workers failed, or wait for a place. */
function whyNot({ heldAt, verdict = "no reason is known" }: Release, waiting: string | undefined) {
  if (heldAt === undefined) return waiting === undefined ? {} : { why: waiting };
  const why = `Three of its workers failed at their start, so the version before it keeps serving: ${verdict}`;
  return { stoppedAt: iso(heldAt), why };
}

/**
 * Makes a new version out of an earlier one. Scaling settings, names, timeouts and the template itself stay as they are
 * now: the new version uses the template as it was back then.
 */
export function rollBack(needs: Releasing, asking: Caller, endpointId: string, n: number) {
  return changeAs(needs, asking, async (caller) => {
    const endpoint = ownEndpoint(needs, caller, endpointId);
    const release = await needs.registry.release(endpoint.no, n);
    if (!release) throw new Refusal("NOT_FOUND", `Version ${n} of this endpoint does not exist, or is no longer kept.`);
    if (n === endpoint.version) throw invalid(`Version ${n} is the current one; name an earlier one.`);
    checkParts(needs, caller, release);
    const brought = Object.fromEntries(madeOf.map((field) => [field, release.settings[field]]));
    const settings = { ...endpoint.settings, ...brought } as EndpointSettings;
    for (const field of madeOf)
      if (settings[field] === undefined) delete (settings as Partial<EndpointSettings>)[field];
    checkKept(needs, caller.ownerNo, settings, endpoint.settings);
    auditing.note({ action: "endpoint.rollback", resource: endpoint.id, after: { version: n } });
    const made = { template: release.template, madeAt: needs.clock.now(), rollbackOf: n };
    return showEndpoint(needs, await saveAndRelease(needs, endpoint, settings, made));
  });
}

/**
 * Makes a new version of the same content, so that all workers are replaced: idle ones at once, busy ones after their
 * job. With `isNow`, busy ones at once, too: their jobs go back to the queue, and the lost start is not counted.
 */
export function restartWorkers(
  needs: Releasing & Needs<"jobs" | "reader">,
  asking: Caller,
  endpointId: string,
  { isNow }: { isNow: boolean },
) {
  return changeAs(needs, asking, async (caller) => {
    const endpoint = ownEndpoint(needs, caller, endpointId);
    const current = await needs.registry.release(endpoint.no, endpoint.version);
    if (!current)
      throw new Refusal("NOT_FOUND", "The endpoint's current version is not kept: save the endpoint instead.");
    auditing.note({ action: "endpoint.restart", resource: endpoint.id, ...(isNow ? { after: { now: true } } : {}) });
    const made = { template: current.template, madeAt: needs.clock.now() };
    const saved = await saveAndRelease(needs, endpoint, endpoint.settings, made);
    const old = isNow ? needs.registry.workersOf(endpoint.no).filter(({ row }) => row.version !== saved.version) : [];
    const why = `version ${saved.version} replaces it at once`;
    for (const worker of old) await stopWorker(needs, worker, why, needs.here.stopGraceMs);
    return showEndpoint(needs, saved);
  });
}

/** Refuses a version whose template, network volume or registry credentials were deleted since. */
function checkParts({ registry }: Releasing, caller: ApiKey, { settings, template }: Release): void {
  const { templateId, networkVolumeIds } = settings;
  if (!registry.template(templateId)) throw invalid(`The template '${templateId}' of that version is deleted.`);
  const volume = networkVolumeIds.find((id) => registry.volume(id)?.ownerNo !== caller.ownerNo);
  if (volume !== undefined) throw invalid(`The network volume '${volume}' of that version is deleted.`);
  const authId = template.containerRegistryAuthId;
  if (authId !== undefined && !registry.registryAuth(authId)) {
    throw invalid(`The container registry auth '${authId}' of that version is deleted.`);
  }
}
