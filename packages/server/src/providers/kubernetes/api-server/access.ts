import { readFileSync } from "node:fs";
import { homedir } from "node:os";
import { delimiter, dirname, join, resolve } from "node:path";
import { parse } from "yaml";
import { type Credential, type ExecEntry, execCredential } from "./exec-credential.js";

type Environment = Readonly<Record<string, string | undefined>>;

/** Where a cluster's API server is, and how it is spoken to. */
export interface Access {
  readonly server: string;
  /** The namespace that the kubeconfig or the service account names, if it names one. */
  readonly namespace: string | undefined;
  readonly ca: string | undefined;
  readonly isUnverified: boolean;
  readonly serverName: string | undefined;
  readonly proxy: string | undefined;
  /** Whether we run in one of its pods. */
  readonly isInside: boolean;
  /** The present credential; `isRefused` says that the last one was not accepted. */
  credential(isRefused?: boolean): Promise<Credential>;
}

const account = "/var/run/secrets/kubernetes.io/serviceaccount";
const accountToken = join(account, "token");

/** A kubeconfig, as far as it is used. */
interface KubeConfig {
  readonly "current-context"?: string;
  readonly clusters?: readonly { readonly name: string; readonly cluster: ClusterEntry }[];
  readonly users?: readonly { readonly name: string; readonly user: UserEntry }[];
  readonly contexts?: readonly {
    readonly name: string;
    readonly context: { readonly cluster: string; readonly user: string; readonly namespace?: string };
  }[];
}

interface ClusterEntry {
  readonly server: string;
  readonly "certificate-authority"?: string;
  readonly "certificate-authority-data"?: string;
  readonly "insecure-skip-tls-verify"?: boolean;
  readonly "tls-server-name"?: string;
  readonly "proxy-url"?: string;
}

interface UserEntry {
  readonly "client-certificate"?: string;
  readonly "client-certificate-data"?: string;
  readonly "client-key"?: string;
  readonly "client-key-data"?: string;
  readonly token?: string;
  readonly tokenFile?: string;
  readonly username?: string;
  readonly password?: string;
  readonly exec?: ExecEntry;
  readonly "auth-provider"?: { readonly name: string };
}

/**
 * Finds the cluster as kubectl does: KUBECONFIG, else ~/.kube/config, else the account of the pod that we run in.
 * Throws one sentence.
 */
export function findAccess(env: Environment, context: string | undefined): Access {
  const given = (env.KUBECONFIG ?? "").split(delimiter).filter(Boolean);
  const paths = given.length > 0 ? given : [join(env.HOME ?? homedir(), ".kube/config")];
  const texts = paths.flatMap((path) => {
    const text = readable(path);
    return text === undefined ? [] : [{ path, text }];
  });
  if (texts.length > 0) return ofFiles(texts, context);
  if (given.length > 0) throw new Error(`KUBECONFIG names ${given.join(" and ")}, which cannot be read`);
  if (context !== undefined) throw new Error(`there is no kubeconfig that could have the context '${context}'`);
  const host = env.KUBERNETES_SERVICE_HOST;
  if (host !== undefined && readable(accountToken) !== undefined) return ofAccount(host, env);
  throw new Error("there is no cluster to use: set KUBECONFIG, or run the service in a pod with a service account");
}

/** In a pod. Its token is renewed in its file. */
function ofAccount(host: string, env: Environment): Access {
  const name = host.includes(":") ? `[${host}]` : host;
  return {
    server: `https://${name}:${env.KUBERNETES_SERVICE_PORT ?? "443"}`,
    namespace: readable(join(account, "namespace"))?.trim(),
    ca: readable(join(account, "ca.crt")),
    isUnverified: false,
    serverName: undefined,
    proxy: undefined,
    isInside: true,
    credential: async () => ({ token: readFileSync(accountToken, "utf8").trim() }),
  };
}

function ofFiles(files: readonly { path: string; text: string }[], wanted: string | undefined): Access {
  const configs = files.map(({ path, text }) => ({ folder: dirname(resolve(path)), config: parsed(path, text) }));
  const named = <T extends { readonly name: string }>(
    of: (config: KubeConfig) => readonly T[] | undefined,
    name: string,
  ) =>
    configs
      .flatMap(({ folder, config }) => (of(config) ?? []).map((entry) => ({ folder, entry })))
      .find(({ entry }) => entry.name === name);
  const name = wanted ?? configs.map(({ config }) => config["current-context"]).find(Boolean);
  if (name === undefined) throw new Error("the kubeconfig has no current context: set MILLRACE_KUBERNETES_CONTEXT");
  const context = named((config) => config.contexts, name)?.entry.context;
  if (!context) throw new Error(`the kubeconfig has no context '${name}' (kubectl config get-contexts lists them)`);
  const cluster = named((config) => config.clusters, context.cluster);
  const user = named((config) => config.users, context.user);
  if (!cluster)
    throw new Error(`the kubeconfig has no cluster '${context.cluster}', which its context '${name}' names`);
  const { cluster: there } = cluster.entry;
  const ca = content(cluster.folder, there["certificate-authority"], there["certificate-authority-data"]);
  return {
    server: there.server.replace(/\/+$/, ""),
    namespace: context.namespace,
    ca,
    isUnverified: there["insecure-skip-tls-verify"] === true,
    serverName: there["tls-server-name"],
    proxy: there["proxy-url"],
    isInside: user?.entry.user.tokenFile === accountToken, // that cluster's account is the pod's
    credential: credentialOf(user?.entry.user ?? {}, user?.folder ?? ".", { server: there.server, ca }),
  };
}

function credentialOf(user: UserEntry, folder: string, cluster: { server: string; ca: string | undefined }) {
  if (user.exec) return execCredential(user.exec, cluster);
  if (user["auth-provider"])
    throw new Error(
      `the kubeconfig signs in by auth-provider '${user["auth-provider"].name}', which clients no longer do: use an exec plugin`,
    );
  const cert = content(folder, user["client-certificate"], user["client-certificate-data"]);
  const key = content(folder, user["client-key"], user["client-key-data"]);
  const { tokenFile } = user;
  const basic =
    user.username === undefined ? undefined : Buffer.from(`${user.username}:${user.password ?? ""}`).toString("base64");
  return async (): Promise<Credential> => ({
    token: tokenFile === undefined ? user.token : readFileSync(resolve(folder, tokenFile), "utf8").trim(),
    basic,
    cert,
    key,
  });
}

function parsed(path: string, text: string): KubeConfig {
  const config = parse(text) as KubeConfig | null;
  if (typeof config !== "object" || config === null) throw new Error(`${path} is not a kubeconfig`);
  return config;
}

function content(folder: string, path: string | undefined, data: string | undefined): string | undefined {
  if (data !== undefined) return Buffer.from(data, "base64").toString("utf8");
  return path === undefined ? undefined : readFileSync(resolve(folder, path), "utf8");
}

function readable(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}
