import { isDeepStrictEqual } from "node:util";
import type { Endpoint } from "../../domain/endpoints/endpoint.js";
import { changesWorkers, isPath } from "../../domain/endpoints/template.js";
import type { CrashPause } from "../../domain/jobs/wait-reason.js";
import { crashPauseMs } from "../../domain/scaling/scaling.js";
import type { LiveWorker } from "../../memory/registry.js";
import type { Needs } from "../needs.js";

/** The directory of an endpoint's local handler; undefined if its workers are made from an image. */
export function handlerFolder({ registry }: Needs<"registry">, { settings }: Endpoint): string | undefined {
  const imageName = registry.template(settings.templateId)?.settings.imageName;
  return imageName !== undefined && isPath(imageName) ? imageName : undefined;
}

/** How long an endpoint's next start waits after failed ones, and whether a change of its handler is noticed. */
export const crashPause = (needs: Needs<"registry" | "clock">, endpoint: Endpoint): CrashPause => ({
  leftMs: (endpoint.failedAt ?? 0) + crashPauseMs(endpoint.failedStarts) - needs.clock.now(),
  isWatched: handlerFolder(needs, endpoint) !== undefined,
});

/**
 * Whether the last proven version may serve in place of a failing one. Of one folder all versions run the same files: only
 * a worker that still runs has earlier ones.
 */
export async function hasStandIn(needs: Needs<"registry">, endpoint: Endpoint): Promise<boolean> {
  const { no, version, provenVersion: proven } = endpoint;
  if (handlerFolder(needs, endpoint) === undefined) return true;
  const isThere = ({ row }: LiveWorker) =>
    row.version === proven && row.readyAt !== undefined && row.wanted === "running";
  if (needs.registry.workersOf(no).some(isThere)) return true;
  const [before, after] = await Promise.all([proven, version].map((n) => needs.registry.release(no, n)));
  if (!before || !after) return true;
  return changesWorkers(before.template, after.template) || !isDeepStrictEqual(before.settings, after.settings);
}
