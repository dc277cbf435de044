import { limits } from "../limits/index.js";
import { NotedSecrets } from "../operations/access/noted-secrets.js";
import type { Needs } from "../operations/needs.js";
import type { JobSecrets } from "../provider.js";

/**
 * The secrets of workers' jobs for the providers that keep their logs. A server that `isAlone` reads them once: it notes
 * all others itself, and tells its providers.
 */
export function notedSecrets(
  needs: Needs<"secrets" | "vault" | "registry" | "clock">,
  { isAlone }: { isAlone: boolean },
): JobSecrets {
  return (workerId) => {
    let noted: NotedSecrets | undefined;
    let readAt = Number.NEGATIVE_INFINITY;
    return async () => {
      const worker = needs.registry.worker(workerId);
      if (!worker || (isAlone && noted !== undefined)) return [];
      const waitMs = readAt + limits.jobSecretsGapMs - needs.clock.now();
      if (waitMs > 0) await needs.clock.sleep(waitMs);
      readAt = needs.clock.now();
      const reading = noted ?? new NotedSecrets(worker.row.no);
      const found = await reading.next(needs);
      noted = reading;
      return found;
    };
  };
}
