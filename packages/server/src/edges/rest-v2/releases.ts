import type { ApiKey } from "../../domain/access/key.js";
import { type Endpoint, servingVersion } from "../../domain/endpoints/endpoint.js";
import { releaseNumbers, showRelease } from "../../operations/endpoints/releases.js";
import type { Parts } from "../../operations/needs.js";
import { releaseReads } from "../shared/release-reads.js";

type Shown = NonNullable<Awaited<ReturnType<typeof showRelease>>>;

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

/** An endpoint's versions, newest first, with what each changed, and how far the newest one has got. */
export async function releasesView(parts: Parts, caller: ApiKey, endpoint: Endpoint) {
  const shown: Shown[] = [];
  for (const n of releaseNumbers(endpoint)) {
    // one at a time: a version holds whole environments
    const release = await releaseReads.do(caller.ownerNo, () => showRelease(parts, caller, endpoint, n));
    if (release) shown.push(release);
  }
  const live = parts.registry.workersOf(endpoint.no).filter(({ row }) => row.wanted !== "stopped");
  const latest = live.filter(({ row }) => row.version === endpoint.version).length;
  return {
    endpointVersion: endpoint.version,
    rollout: {
      inProgress: latest < live.length && servingVersion(endpoint) === endpoint.version,
      workersOnLatest: latest,
      workersTotal: live.length,
      percentOnLatest: live.length === 0 ? 100 : Math.floor((100 * latest) / live.length),
    },
    releases: shown.map((release, at) => ({
      id: `${endpoint.id}-${release.version}`,
      version: release.version,
      source: "MANUAL" as const,
      buildId: null,
      createdByUserId: parts.registry.user(endpoint.ownerNo)?.id ?? null,
      workerCount: release.workers,
      createdAt: release.madeAt,
      diff: diffOf(shown[at + 1], release),
    })),
  };
}

/** What a version changed; nothing where the version before it is no longer kept. */
function diffOf(before: Shown | undefined, after: Shown): { field: string; old: unknown; new: unknown }[] {
  if (!before) return [];
  return compared
    .filter((field) => JSON.stringify(before[field]) !== JSON.stringify(after[field]))
    .map((field) => ({ field, old: before[field], new: after[field] }));
}
