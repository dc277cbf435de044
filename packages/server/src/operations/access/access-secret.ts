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

type Hiding = Needs<"secrets" | "vault" | "hideInLog" | "emit" | "clock">;

/** Masks the secrets of the jobs that a worker holds in its log again: its provider may have forgotten them. */
export async function hideHeldSecrets(needs: Hiding & Needs<"reader">, worker: LiveWorker): Promise<void> {
  const jobs: Secretive[] = [];
  for (const { no } of await needs.reader.heldBy(worker.row.no)) {
    const sent = await needs.reader.submission(no);
    if (sent?.s3Config !== undefined) jobs.push(sent);
  }
  if (jobs.length > 0) await hideSecrets(needs, worker, jobs);
}

/**
 * Masks these jobs' secrets in the worker's log before the worker receives them, and notes them for whoever reads the
 * log after a restart. If that fails, warns and goes on.
 */
export async function hideSecrets(needs: Hiding, worker: LiveWorker, jobs: readonly Secretive[]): Promise<void> {
  const secrets = new Set<string>();
  for (const { s3Config } of jobs) {
    if (turns.isOver) await turns.take(["secrets"]);
    const secret = accessSecretOf(needs, s3Config);
    if (secret !== undefined) secrets.add(secret);
  }
  const { row } = worker;
  const over = new AbortController();
  const late = needs.clock.sleep(limits.logHideMs, over.signal).then(() => {
    if (!over.signal.aborted) throw new Error("Its provider did not answer in time");
  });
  try {
    // if the keeper is gone, so are its workers
    const hiding = Promise.all(Array.from(secrets, (secret) => needs.hideInLog(row.id, secret)));
    await Promise.race([Promise.all([hiding, noteSecrets(needs, worker, secrets)]), late]);
  } catch (error) {
    const message = `the s3Config.accessSecret of a job may be shown in the log of worker ${row.id}`;
    needs.emit({ type: "server.warning", message, error });
  } finally {
    over.abort();
  }
}

/** Most jobs of a worker have the same secret: it is noted once by each server. */
async function noteSecrets({ secrets, vault }: Hiding, worker: LiveWorker, texts: ReadonlySet<string>): Promise<void> {
  worker.notedSecrets ??= new Set();
  const { notedSecrets } = worker;
  const unknown = [...texts].filter((text) => !notedSecrets.has(text));
  await secrets.noteOfJobs(
    worker.row.no,
    unknown.map((text) => vault.seal(text)),
  );
  if (notedSecrets.size + unknown.length > limits.heldJobsMax) notedSecrets.clear();
  for (const text of unknown) notedSecrets.add(text);
}
