import type { ApiKey } from "../../domain/access/key.js";
import { type Endpoint, servingVersion } from "../../domain/endpoints/endpoint.js";
import type { Parts } from "../../operations/needs.js";
import { readRelease } from "../shared/release-reads.js";

type Shown = NonNullable<Awaited<ReturnType<typeof readRelease>>>;

/** The fields in which versions differ. */
const compared = [
  "imageName",
  "templateId",
  "env",
  "dockerEntrypoint",
  "dockerStartCmd",
  "gpuTypeIds",
  "gpuCount",
  "computeType",
] as const;

/** How far the newest version has got. */
export function rolloutView({ registry }: Parts, endpoint: Endpoint) {
  const live = registry.workersOf(endpoint.no).filter(({ row }) => row.wanted !== "stopped");
  const latest = live.filter(({ row }) => row.version === endpoint.version).length;
  return {
    endpointVersion: endpoint.version,
    rollout: {
      inProgress: latest < live.length && servingVersion(endpoint) === endpoint.version,
      workersOnLatest: latest,
      workersTotal: live.length,
      percentOnLatest: live.length === 0 ? 100 : Math.floor((100 * latest) / live.length),
    },
  };
}

/** A version with what it changed; undefined if it is no longer kept. `before`: the number of the version before it. */
export async function releaseView(
  parts: Parts,
  caller: ApiKey,
  endpoint: Endpoint,
  { version, before }: { readonly version: number; readonly before: number | undefined },
) {
  const release = await readRelease(parts, caller, endpoint, version);
  if (!release) return undefined;
  const older = before === undefined ? undefined : await readRelease(parts, caller, endpoint, before);
  return {
    id: `${endpoint.id}-${release.version}`,
    version: release.version,
    source: "MANUAL" as const,
    buildId: null,
    createdByUserId: parts.registry.user(endpoint.ownerNo)?.id ?? null,
    workerCount: release.workers,
    createdAt: release.madeAt,
    diff: diffOf(older, release),
  };
}

/** What a version changed; nothing where the version before it is no longer kept. */
function diffOf(before: Shown | undefined, after: Shown): { field: string; old: unknown; new: unknown }[] {
  if (!before) return [];
  return compared
    .filter((field) => JSON.stringify(before[field]) !== JSON.stringify(after[field]))
    .map((field) => ({ field, old: before[field], new: after[field] }));
}
