import { limits } from "../../limits/index.js";
import type { LiveWorker } from "../../memory/registry.js";
import type { Provider } from "../../provider.js";
import { turns } from "../../turns.js";
import type { Needs } from "../needs.js";

interface Secretive {
  readonly s3Config?: string | undefined;
}

/** The `accessSecret` in a job's sealed `s3Config`. */
export function accessSecretOf({ vault }: Needs<"vault">, s3Config: string | undefined): string | undefined {
  if (s3Config === undefined) return undefined;
  const { accessSecret } = JSON.parse(vault.open(s3Config)) as { accessSecret?: unknown };
  return typeof accessSecret === "string" && accessSecret !== "" ? accessSecret : undefined;
}

/**
 * Masks secrets in the logs of workers on hosts that this server tends. For other workers the call is refused: the
 * provider does not know them, and would start a keeper just to pass the secret on.
 */
export function hideOnHost({ registry, here }: Needs<"registry" | "here">, hide: Provider["hide"]): Provider["hide"] {
  return async (workerId, secret) => {
    const live = registry.worker(workerId);
    // its log is kept by another server; whoever reads it hides the secrets of its jobs again
    if (live && !here.tends(live.row.hostNo) && here.readsLogs(live.row.hostNo)) return;
    if (!live || !here.tends(live.row.hostNo)) throw new Error("The worker is not on a host of this server");
    await hide(workerId, secret);
  };
}

/** Masks the secrets of the jobs that a worker holds in its log again: its provider may have forgotten them. */
export async function hideHeldSecrets(
  needs: Needs<"reader" | "vault" | "hideInLog" | "emit" | "clock">,
  worker: LiveWorker,
): Promise<void> {
  const jobs: Secretive[] = [];
  for (const { no } of await needs.reader.heldBy(worker.row.no)) {
    const sent = await needs.reader.submission(no);
    if (sent?.s3Config !== undefined) jobs.push(sent);
  }
  if (jobs.length > 0) await hideSecrets(needs, worker, jobs);
}

/** Masks these jobs' secrets in the worker's log before the worker receives them. If that fails, warns and goes on. */
export async function hideSecrets(
  needs: Needs<"vault" | "hideInLog" | "emit" | "clock">,
  { row }: LiveWorker,
  jobs: readonly Secretive[],
): Promise<void> {
  const secrets = new Set<string>();
  for (const { s3Config } of jobs) {
    if (turns.isOver) await turns.take(["secrets"]);
    const secret = accessSecretOf(needs, s3Config);
    if (secret !== undefined) secrets.add(secret);
  }
  const over = new AbortController();
  const late = needs.clock.sleep(limits.logHideMs, over.signal).then(() => {
    if (!over.signal.aborted) throw new Error("Its provider did not answer in time");
  });
  try {
    // if the keeper is gone, so are its workers
    await Promise.race([Promise.all(Array.from(secrets, (secret) => needs.hideInLog(row.id, secret))), late]);
  } catch (error) {
    const message = `the s3Config.accessSecret of a job may be shown in the log of worker ${row.id}`;
    needs.emit({ type: "server.warning", message, error });
  } finally {
    over.abort();
  }
}
