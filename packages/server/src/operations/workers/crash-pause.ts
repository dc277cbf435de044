import type { Endpoint } from "../../domain/endpoints/endpoint.js";
import { isPath } from "../../domain/endpoints/template.js";
import type { CrashPause } from "../../domain/jobs/wait-reason.js";
import { crashPauseMs } from "../../domain/scaling/scaling.js";
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
