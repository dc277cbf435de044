import type { LiveWorker } from "../registry.js";
import type { TakenJob } from "../store.js";
import type { Needs } from "./needs.js";

/** The `accessSecret` in a job's sealed `s3Config`. */
export function accessSecretOf({ vault }: Needs<"vault">, s3Config: string | undefined): string | undefined {
  if (s3Config === undefined) return undefined;
  const { accessSecret } = JSON.parse(vault.open(s3Config)) as { accessSecret?: unknown };
  return typeof accessSecret === "string" && accessSecret !== "" ? accessSecret : undefined;
}

/** Has the secrets of these jobs masked in their worker's log, before the worker is told them. */
export async function hideSecrets(
  needs: Needs<"vault" | "hideInLog" | "emit">,
  { row }: LiveWorker,
  jobs: readonly TakenJob[],
): Promise<void> {
  const secrets = new Set(jobs.map(({ s3Config }) => accessSecretOf(needs, s3Config)));
  secrets.delete(undefined);
  for (const secret of secrets) {
    // a keeper that is gone has taken its workers with it
    await needs.hideInLog(row.id, secret as string).catch((error) => {
      const message = `the s3Config.accessSecret of a job may be shown in the log of worker ${row.id}`;
      needs.emit({ type: "server.warning", message, error });
    });
  }
}
