import { createHash } from "node:crypto";
import type { Config, KubernetesConfig } from "../config.js";
import type { ClusterGpus, HostFacts } from "../domain/hosts/host.js";
import type { WorkerHandle } from "../domain/workers/worker.js";
import type { Emit } from "../events.js";
import { StartError } from "../host/data-directory.js";
import type { ClusterVolumes } from "../operations/needs.js";
import type { JobSecrets, Provider } from "../provider.js";
import type { Stores } from "../store/index.js";

/** What opening a cluster needs besides the settings. */
interface Opening {
  /** Tells apart the workers of several services in one namespace. */
  readonly installation: string;
  readonly logsDir: string;
  readonly env: NodeJS.ProcessEnv;
  readonly emit: Emit;
  readonly jobSecrets: JobSecrets;
  /** Where this server remembers which cluster it was. */
  readonly kept: { readonly read: () => string | undefined; readonly keep: (text: string) => void };
  /** What servers of this database have reported of hosts, by their ids. */
  readonly reported: ReadonlyMap<string, HostFacts>;
}

/** The Kubernetes cluster that runs workers besides this machine: a host that servers tend in turn. */
export interface OpenCluster {
  /** Identifies its host: the same for all servers. */
  readonly id: string;
  /** The name by which endpoints ask for it. */
  readonly name: string;
  /** The classes of its pods that endpoints may name. */
  readonly podClasses: readonly string[];
  readonly provider: Provider;
  /** Where it keeps volumes. */
  readonly volumes: ClusterVolumes;
  readonly connect: Provider["connect"];
  /** What is known of it now. */
  readonly facts: () => HostFacts;
  /** Looks at its nodes; returns whether anything has changed. */
  readonly look: () => Promise<boolean>;
}

/**
 * Opens the clusters that the settings name, in their order. Throws a {@link StartError} if the settings are wrong, or a
 * right is missing. A cluster that was there before and does not answer is waited for: jobs are accepted meanwhile.
 */
export async function openClusters(config: Config, opening: Opening): Promise<readonly OpenCluster[]> {
  const { kubernetes } = config;
  if (!kubernetes) return [];
  const kept = new Map((opening.kept.read() ?? "").split("\n").filter(Boolean).map(placeAndUid));
  const reported = new Map(
    [...opening.reported].map(([id, { cluster }]) => [cluster?.place, id.slice(idBegin.length)]),
  );
  const opened: OpenCluster[] = [];
  for (const context of kubernetes.contexts) {
    const named = kubernetes.contexts.length > 1 ? ` (context ${context})` : "";
    try {
      const known = (place: string) => kept.get(place) ?? reported.get(placeMark(place));
      const { place, uid, ...cluster } = await openCluster(config, kubernetes, context, known, opening);
      kept.set(place, uid);
      const same = opened.find(({ id }) => id === cluster.id);
      if (same) throw new Error(`it is the same namespace as that of context ${same.name}`);
      opened.push(cluster);
    } catch (error) {
      throw new StartError(`Kubernetes${named}: ${error instanceof Error ? error.message : error}.`);
    }
  }
  opening.kept.keep([...kept].map(([place, uid]) => `${uid} ${place}`).join("\n"));
  return opened;
}

/** How the id of a cluster's host begins. */
const idBegin = "kubernetes/";

/** Stands for where a cluster is: its address is nobody else's business. */
const placeMark = (place: string): string => createHash("sha256").update(place).digest("hex").slice(0, 16);

/** Opens the cluster of a context. `knownAt`: by where it is, its namespace's id, if any server has reached it before. */
async function openCluster(
  config: Config,
  kubernetes: KubernetesConfig,
  context: string | undefined,
  knownAt: (place: string) => string | undefined,
  { installation, logsDir, env, emit, jobSecrets }: Opening,
): Promise<OpenCluster & { readonly place: string; readonly uid: string }> {
  const name = context ?? "default";
  const isOne = kubernetes.contexts.length === 1;
  const warn = (message: string) =>
    emit({ type: "server.warning", message: isOne ? message : `cluster ${name}: ${message}` });
  // loaded only where there is one
  const { findAccess } = await import("../providers/kubernetes/api-server/access.js");
  const { Cluster, isAway } = await import("../providers/kubernetes/api-server/cluster.js");
  const { KubernetesProvider } = await import("../providers/kubernetes/kubernetes-provider.js");
  const { Claims } = await import("../providers/kubernetes/claims.js");
  const { gpuTypesOf } = await import("../providers/kubernetes/nodes.js");
  const { additionsIn } = await import("../providers/kubernetes/additions.js");
  const { missingRights, namespaceUid, needed, toForward, toFreeze } = await import(
    "../providers/kubernetes/rights.js"
  );
  const access = findAccess(env, context);
  const namespace = kubernetes.namespace ?? access.namespace ?? "default";
  const cluster = new Cluster(access);
  const { route = access.isInside ? "pods" : "api-server" } = kubernetes;
  const lacks = await missingRights(cluster, namespace, [
    ...needed,
    ...(kubernetes.freezes ? toFreeze : []),
    ...(kubernetes.route === "api-server" ? toForward : []),
  ]);
  const place = `${access.server} ${namespace}`;
  const known = knownAt(place);
  if ("away" in lacks) {
    // which cluster it is can only be asked of it
    if (known === undefined) throw new Error(lacks.away);
    warn(`${lacks.away}; workers start there once it does`);
  } else if (lacks.missing.length > 0) throw new Error(lacksRights(lacks.missing, namespace));
  // it may be given at any time, and not every service has such endpoints
  if (kubernetes.route === undefined && route === "api-server" && !("away" in lacks)) {
    const barred = await missingRights(cluster, namespace, toForward);
    if ("missing" in barred && barred.missing.length > 0) warn(isBarredFrom(barred.missing, namespace));
  }
  const uid = String("away" in lacks ? known : await namespaceUid(cluster, namespace));
  const { storageClass, accessMode } = kubernetes;
  const additions = kubernetes.podFile === undefined ? undefined : additionsIn(kubernetes.podFile);
  const claims = new Claims(cluster, namespace, { installation, storageClass, accessMode, cluster: name, warn });
  const provider = new KubernetesProvider({
    cluster,
    namespace,
    logsDir,
    installation,
    graceMs: config.stopGraceMs,
    gpuResource: kubernetes.gpuResource,
    gpuLabel: kubernetes.gpuLabel,
    hasVolumesOfOneNode: accessMode === "ReadWriteOnce",
    claims,
    jobSecrets,
    freezes: kubernetes.freezes,
    forwards: route === "api-server",
    additions: additions?.all ?? {},
    ...(additions ? { classes: additions.classes } : {}),
    warn,
  });
  const podClasses = [...(additions?.classes.keys() ?? [])];
  const memory = { memoryMib: kubernetes.memoryGb * 1_024, gpuMemoryMib: kubernetes.gpuMemoryGb * 1_024 };
  let gpuTypes: readonly ClusterGpus[] | undefined;
  return {
    place,
    uid,
    id: `${idBegin}${uid}`,
    name,
    podClasses,
    provider,
    volumes: claims,
    connect: provider.connect,
    facts: () => ({
      location: undefined,
      gpus: [],
      gpusEnforced: true,
      cpus: 0,
      memoryMib: 0,
      cannotRun: ["directory"],
      cluster: { name, place: placeMark(place), podClasses, ...memory, ...(gpuTypes ? { gpuTypes } : {}) },
    }),
    look: async () => {
      const before = JSON.stringify(gpuTypes);
      gpuTypes = await gpuTypesOf(cluster, kubernetes).catch((error) => {
        if (isAway(error)) return gpuTypes;
        throw error;
      });
      return JSON.stringify(gpuTypes) !== before;
    },
  };
}

/** Logs of workers on any host, and what is masked there. `rowOf`: what is known of a worker. */
export function logsEverywhere(
  machine: Provider,
  clusters: readonly { readonly no: number; readonly provider: Provider }[],
  rowOf: (workerId: string) => { readonly hostNo: number; readonly handle?: WorkerHandle | undefined } | undefined,
): Pick<Provider, "logs" | "hide"> {
  const of = (workerId: string, handle: WorkerHandle | undefined) => {
    if (handle?.provider !== "kubernetes") return machine;
    const hostNo = rowOf(workerId)?.hostNo;
    // of a worker that is long forgotten only its files are left, which any of them reads
    return (clusters.find(({ no }) => no === hostNo) ?? clusters[0])?.provider ?? machine;
  };
  return {
    logs: (workerId, handle, query) => of(workerId, handle).logs(workerId, handle, query),
    hide: (workerId, secret) => of(workerId, rowOf(workerId)?.handle).hide(workerId, secret),
  };
}

const placeAndUid = (line: string): [place: string, uid: string] => {
  const at = line.indexOf(" ");
  return [line.slice(at + 1), line.slice(0, at)];
};

/** Identifies the service among those that share a namespace: the same on all of its servers, and for ever. */
export async function installationId({ access }: Pick<Stores, "access">): Promise<string> {
  const [admin] = await access.users();
  return createHash("sha256")
    .update(admin?.id ?? "")
    .digest("hex")
    .slice(0, 16);
}

const lacksRights = (missing: readonly string[], namespace: string): string =>
  `the account of this service may not ${missing.join(", nor ")} in namespace '${namespace}': give it these rights by a Role`;

const isBarredFrom = (missing: readonly string[], namespace: string): string =>
  `the account of this service may not ${missing.join(", nor ")} in namespace '${namespace}', so load balancing workers there are not reached: give it that right, or set MILLRACE_KUBERNETES_ROUTE=pods if this machine reaches pods' addresses`;
