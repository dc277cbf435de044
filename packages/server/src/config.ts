import { homedir } from "node:os";
import { resolve } from "node:path";
import { Value } from "typebox/value";
import { type Settings, settings } from "./settings.js";

export interface Config {
  readonly host: string;
  readonly port: number;
  readonly dataDir: string;
  readonly databaseUrl: string | undefined;
  readonly apiKey: string | undefined;
  readonly sealKey: string | undefined;
  readonly rateLimits: boolean;
  readonly requestsPerWorker: number;
  readonly workerUrl: string | undefined;
  readonly startTimeoutMs: number;
  readonly stopGraceMs: number;
  readonly flashBootMs: number;
  readonly awayMs: number;
  readonly auditKeptMs: number;
  readonly demo: boolean;
  readonly banner: boolean;
  /** What to do about a package that a Python handler lacks; `{package}` stands for its name. */
  readonly packageAdvice: string;
  readonly localProcesses: boolean;
  readonly containers: boolean;
  /** Indexes and UUIDs, or all of them. */
  readonly gpus: "all" | readonly string[];
  readonly enforceGpus: boolean | undefined;
  readonly dockerNetwork: string;
  readonly dockerPublish: string | undefined;
  readonly dockerVolumes: boolean;
  /** Where workers run whose endpoint does not say, in order of preference. */
  readonly places: readonly ("machines" | "cluster")[];
  /** Undefined if no cluster runs workers. */
  readonly kubernetes: KubernetesConfig | undefined;
  readonly volumeQuotas: boolean;
  readonly webhookPrivate: boolean;
  readonly lbDomain: string | undefined;
  /** The host names that requests may use besides loopback's; undefined if any name is accepted. */
  readonly hostNames: readonly string[] | undefined;
  /** The address where other servers reach this one, if it was set. */
  readonly serverAddress: { readonly host: string; readonly port: number } | undefined;
  readonly trustProxy: boolean;
  readonly publicCatalog: boolean;
  readonly location: string | undefined;
  readonly logLevel: string;
  readonly logFormat: string;
  /** Where traces go; undefined if nothing is traced. */
  readonly collector: { readonly url: string; readonly headers: Readonly<Record<string, string>> } | undefined;
  readonly commit: string | undefined;
}

/** The cluster that runs workers. */
export interface KubernetesConfig {
  /** The kubeconfig's contexts, each of which leads to a cluster; undefined is its current one. */
  readonly contexts: readonly (string | undefined)[];
  readonly namespace: string | undefined;
  /** The file with what every pod has besides. */
  readonly podFile: string | undefined;
  readonly freezes: boolean;
  /** How workers are reached; undefined: at their addresses in a pod of the cluster, and through its API server elsewhere. */
  readonly route: "pods" | "api-server" | undefined;
  readonly storageClass: string | undefined;
  readonly accessMode: string;
  readonly memoryGb: number;
  readonly gpuMemoryGb: number;
  readonly gpuResource: string;
  readonly gpuLabel: string;
}

/** Some settings are wrong: all mistakes, one sentence each. */
export class ConfigError extends Error {}

export const isLoopback = (host: string) => /^(127\.\d+\.\d+\.\d+|::1|localhost)$/.test(host);

/** Reads the environment once. Throws a {@link ConfigError} that names every mistake. */
export function readConfig(env: Readonly<Record<string, string | undefined>>): Config {
  const mistakes: string[] = [];
  const given: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(env)) {
    const isOthers = name.startsWith("MILLRACE_TEST_") || ofTheCommandLine.has(name);
    if (!name.startsWith("MILLRACE_") || isOthers || value === undefined || value === "") continue;
    const schema = (settings.properties as Record<string, { type?: string }>)[name];
    if (!schema) mistakes.push(unknownSetting(name));
    else given[name] = schema.type === "integer" && /^-?\d+$/.test(value) ? Number(value) : value;
  }
  for (const [name, value] of Object.entries(given)) {
    const schema = settings.properties[name as keyof typeof settings.properties];
    if (!Value.Check(schema, value)) mistakes.push(`${name} is '${shown(name, value)}': ${expected(name)}`);
  }
  if (given.MILLRACE_KUBERNETES === "on" && given.MILLRACE_WORKER_URL === undefined)
    mistakes.push("MILLRACE_KUBERNETES needs MILLRACE_WORKER_URL: the URL at which pods reach this service.");
  if (given.MILLRACE_PLACES === "cluster" && given.MILLRACE_KUBERNETES !== "on")
    mistakes.push("MILLRACE_PLACES is cluster, and MILLRACE_KUBERNETES is off: there is no cluster.");
  if (mistakes.length > 0) throw new ConfigError(mistakes.join("\n"));
  return Object.freeze(toConfig(Value.Default(settings, given) as Settings));
}

/** Variables of the command line, which people may have set where they start a server. */
const ofTheCommandLine = new Set(["MILLRACE_URL", "MILLRACE_CONFIG_DIR", "MILLRACE_CLONE"]);

const unknownSetting = (name: string): string =>
  `${name} is not a setting; docs/reference/settings.md lists all settings.`;

const shown = (name: string, value: unknown) => (/KEY|DATABASE|OTLP_HEADERS/.test(name) ? "…" : String(value));

function expected(name: string): string {
  const schema = settings.properties[name as keyof typeof settings.properties] as {
    minimum?: number;
    maximum?: number;
    anyOf?: { const?: string }[];
    pattern?: string;
    minLength?: number;
  };
  if (schema.minimum !== undefined) return `it must be a whole number from ${schema.minimum} to ${schema.maximum}.`;
  if (schema.anyOf) return `it must be one of ${schema.anyOf.map((each) => each.const).join(", ")}.`;
  if (name === "MILLRACE_DATABASE_URL") return "it must be a postgres://user:password@host:port/database address.";
  if (name === "MILLRACE_GPUS") return "it must be all, none, or indexes and UUIDs of GPUs, comma-separated.";
  if (name === "MILLRACE_COMMIT") return "it must be a commit's hash.";
  if (name === "MILLRACE_SEAL_KEY") return "it must be 64 hex digits.";
  if (name === "MILLRACE_LB_DOMAIN") return "it must be a domain name, such as lb.example.com.";
  if (name === "MILLRACE_HOST_NAMES") return "it must be host names, comma-separated, such as millrace.example.com.";
  if (name === "MILLRACE_SERVER_ADDRESS") return "it must be host:port, such as server-1:8000 or [fd00::1]:8000.";
  if (name === "MILLRACE_OTLP_HEADERS") return "it must be name=value pairs, comma-separated.";
  if (name === "MILLRACE_WORKER_URL" || name === "MILLRACE_OTLP_URL")
    return "it must be an http:// or https:// address.";
  return `it must be at least ${schema.minLength} visible characters.`;
}

function collectorOf({ MILLRACE_OTLP_URL: url, MILLRACE_OTLP_HEADERS: headers = "" }: Settings): Config["collector"] {
  const pairs = headers.split(",").flatMap((pair) => {
    const [, name, value = ""] = /^([^=]+)=(.*)$/.exec(pair) ?? [];
    return name === undefined ? [] : [[name, value]];
  });
  return url === undefined ? undefined : { url, headers: Object.fromEntries(pairs) };
}

const kubernetesOf = (s: Settings): KubernetesConfig | undefined =>
  s.MILLRACE_KUBERNETES !== "on"
    ? undefined
    : {
        contexts: contextsOf(s.MILLRACE_KUBERNETES_CONTEXT),
        namespace: s.MILLRACE_KUBERNETES_NAMESPACE,
        podFile: s.MILLRACE_KUBERNETES_POD,
        freezes: s.MILLRACE_KUBERNETES_FREEZE === "on",
        route: s.MILLRACE_KUBERNETES_ROUTE,
        storageClass: s.MILLRACE_KUBERNETES_STORAGE_CLASS,
        memoryGb: s.MILLRACE_KUBERNETES_MEMORY,
        gpuMemoryGb: s.MILLRACE_KUBERNETES_GPU_MEMORY,
        accessMode: s.MILLRACE_KUBERNETES_ACCESS_MODE,
        gpuResource: s.MILLRACE_KUBERNETES_GPU_RESOURCE,
        gpuLabel: s.MILLRACE_KUBERNETES_GPU_LABEL,
      };

function contextsOf(text: string | undefined): readonly (string | undefined)[] {
  const names = [...new Set((text ?? "").split(",").map((name) => name.trim()))].filter(Boolean);
  return names.length > 0 ? names : [undefined];
}

function addressOf(text: string | undefined): Config["serverAddress"] {
  if (text === undefined) return undefined;
  const colonAt = text.lastIndexOf(":");
  return { host: text.slice(0, colonAt).replace(/^\[|\]$/g, ""), port: Number(text.slice(colonAt + 1)) };
}

function chosenGpus(text: string): "all" | readonly string[] {
  if (text === "all") return text;
  return text === "none" ? [] : text.split(",").map((each) => each.trim());
}

/** Whether only this machine reaches us: a proxy on it would make a server on loopback public. */
const isForUsAlone = (s: Settings): boolean =>
  isLoopback(s.MILLRACE_HOST) && s.MILLRACE_TRUST_PROXY === "off" && s.MILLRACE_HOST_NAMES === undefined;

/**
 * On loopback, only our own names are accepted, because web pages may rebind theirs to it; behind a proxy, the names
 * that it serves.
 */
function hostNames(s: Settings): readonly string[] | undefined {
  const given = s.MILLRACE_HOST_NAMES?.split(",").map((each) => each.trim());
  if (!given && (!isLoopback(s.MILLRACE_HOST) || s.MILLRACE_TRUST_PROXY === "on")) return undefined;
  const url = s.MILLRACE_WORKER_URL ?? "";
  const workers = URL.canParse(url) ? new URL(url).hostname : undefined;
  return [...(given ?? []), s.MILLRACE_HOST, ...(workers ? [workers] : [])].map((each) => each.toLowerCase());
}

function toConfig(s: Settings): Config {
  return {
    host: s.MILLRACE_HOST,
    port: s.MILLRACE_PORT,
    dataDir: resolve(s.MILLRACE_DATA_DIR.replace(/^~(?=\/|$)/, homedir())),
    databaseUrl: s.MILLRACE_DATABASE_URL,
    apiKey: s.MILLRACE_API_KEY,
    sealKey: s.MILLRACE_SEAL_KEY,
    rateLimits: s.MILLRACE_RATE_LIMITS === "on",
    requestsPerWorker: s.MILLRACE_REQUESTS_PER_WORKER,
    workerUrl: s.MILLRACE_WORKER_URL?.replace(/\/+$/, ""),
    startTimeoutMs: s.MILLRACE_START_TIMEOUT * 1_000,
    stopGraceMs: s.MILLRACE_STOP_GRACE * 1_000,
    flashBootMs: s.MILLRACE_FLASHBOOT_KEEP * 1_000,
    awayMs: s.MILLRACE_AWAY_MAX * 1_000,
    auditKeptMs: s.MILLRACE_AUDIT_DAYS * 86_400_000,
    demo: s.MILLRACE_DEMO === "on",
    banner: s.MILLRACE_BANNER === "on",
    packageAdvice: s.MILLRACE_PACKAGE_ADVICE,
    localProcesses: s.MILLRACE_LOCAL_PROCESSES === "on",
    containers: s.MILLRACE_CONTAINERS === "on",
    gpus: chosenGpus(s.MILLRACE_GPUS),
    enforceGpus: s.MILLRACE_ENFORCE_GPUS === undefined ? undefined : s.MILLRACE_ENFORCE_GPUS === "on",
    dockerNetwork: s.MILLRACE_DOCKER_NETWORK as string,
    dockerPublish: s.MILLRACE_DOCKER_PUBLISH,
    dockerVolumes: s.MILLRACE_DOCKER_VOLUMES === "on",
    places: s.MILLRACE_PLACES.split(",") as Config["places"],
    kubernetes: kubernetesOf(s),
    volumeQuotas: s.MILLRACE_VOLUME_QUOTAS === "on",
    webhookPrivate: s.MILLRACE_WEBHOOK_PRIVATE === undefined ? isForUsAlone(s) : s.MILLRACE_WEBHOOK_PRIVATE === "on",
    lbDomain: s.MILLRACE_LB_DOMAIN?.toLowerCase(),
    hostNames: hostNames(s),
    serverAddress: addressOf(s.MILLRACE_SERVER_ADDRESS),
    trustProxy: s.MILLRACE_TRUST_PROXY === "on",
    publicCatalog: s.MILLRACE_PUBLIC_CATALOG === "on",
    location: s.MILLRACE_LOCATION,
    logLevel: s.MILLRACE_LOG_LEVEL as string,
    logFormat: s.MILLRACE_LOG_FORMAT as string,
    collector: collectorOf(s),
    commit: s.MILLRACE_COMMIT,
  };
}
