import { execFile } from "node:child_process";
import { realTime } from "../../../clock.js";
import { limits } from "../../../limits/index.js";

/** What proves who we are. */
export interface Credential {
  readonly token?: string | undefined;
  readonly basic?: string | undefined;
  readonly cert?: string | undefined;
  readonly key?: string | undefined;
}

/** A command that prints a credential. */
export interface ExecEntry {
  readonly apiVersion?: string;
  readonly command: string;
  readonly args?: readonly string[] | null;
  readonly env?: readonly { readonly name: string; readonly value: string }[] | null;
  readonly installHint?: string;
  readonly provideClusterInfo?: boolean;
}

/** What a plugin prints: an ExecCredential of client.authentication.k8s.io. */
interface Printed {
  readonly status?: {
    readonly token?: string;
    readonly clientCertificateData?: string;
    readonly clientKeyData?: string;
    readonly expirationTimestamp?: string;
  };
}

const versionDefault = "client.authentication.k8s.io/v1";

/** Credentials printed by a command, as cloud providers' kubeconfigs have them: kept until shortly before they expire. */
export function execCredential(entry: ExecEntry, cluster: { server: string; ca: string | undefined }) {
  let kept: { readonly credential: Credential; readonly untilMs: number; readonly at: number } | undefined;
  let running: Promise<Credential> | undefined;

  async function renew(): Promise<Credential> {
    const { status } = await printed(entry, cluster);
    if (!status) throw new Error(`${entry.command} printed no credential`);
    const credential = { token: status.token, cert: status.clientCertificateData, key: status.clientKeyData };
    const expiresAt =
      status.expirationTimestamp === undefined ? Number.POSITIVE_INFINITY : Date.parse(status.expirationTimestamp);
    kept = { credential, untilMs: expiresAt - limits.credentialAheadMs, at: realTime.monotonicMs() };
    return credential;
  }

  return async (isRefused = false): Promise<Credential> => {
    // one that is refused although it is new would be refused again
    const isFresh = kept && realTime.monotonicMs() - kept.at < limits.credentialAgainMs;
    if (kept && (isRefused ? isFresh : realTime.wallMs() < kept.untilMs)) return kept.credential;
    running ??= renew().finally(() => {
      running = undefined;
    });
    return running;
  };
}

function printed(entry: ExecEntry, { server, ca }: { server: string; ca: string | undefined }): Promise<Printed> {
  const apiVersion = entry.apiVersion ?? versionDefault;
  const authority = ca === undefined ? {} : { "certificate-authority-data": Buffer.from(ca).toString("base64") };
  const info = {
    apiVersion,
    kind: "ExecCredential",
    spec: { interactive: false, ...(entry.provideClusterInfo ? { cluster: { server, ...authority } } : {}) },
  };
  const own = Object.fromEntries((entry.env ?? []).map(({ name, value }) => [name, value]));
  const env = { ...process.env, ...own, KUBERNETES_EXEC_INFO: JSON.stringify(info) };
  return new Promise((resolve, reject) => {
    const options = { env, timeout: limits.credentialMs, maxBuffer: limits.credentialBytesMax };
    execFile(entry.command, [...(entry.args ?? [])], options, (error, stdout, stderr) => {
      if (error) {
        const isMissing = (error as NodeJS.ErrnoException).code === "ENOENT";
        const why = isMissing ? (entry.installHint ?? "it is not installed") : stderr.trim() || error.message;
        return reject(new Error(`${entry.command}, which the kubeconfig names, gave no credential: ${why}`));
      }
      try {
        resolve(JSON.parse(stdout) as Printed);
      } catch {
        reject(new Error(`${entry.command} did not print JSON`));
      }
    });
  });
}
