import { createHash } from "node:crypto";
import type { Config } from "../config.js";
import type { ClusterGpus, HostFacts } from "../domain/hosts/host.js";
import type { WorkerHandle } from "../domain/workers/worker.js";
import type { Emit } from "../events.js";
import { StartError } from "../host/data-directory.js";
import type { ClusterVolumes } from "../operations/needs.js";
import type { Provider } from "../provider.js";
import type { Stores } from "../store/index.js";

/** What opening a cluster needs besides the settings. */
interface Opening {
  /** Tells apart the workers of several services in one namespace. */
  readonly installation: string;
  readonly logsDir: string;
  readonly env: NodeJS.ProcessEnv;
  readonly emit: Emit;
  /** Where this server remembers which cluster it was. */
  readonly kept: { readonly read: () => string | undefined; readonly keep: (text: string) => void };
}

/** The Kubernetes cluster that runs workers besides this machine: a host that servers tend in turn. */
export interface OpenCluster {
  /** Identifies its host: the same for all servers. */
  readonly id: string;
  readonly provider: Provider;
  /** Where it keeps volumes. */
  readonly volumes: ClusterVolumes;
  /** What is known of it now. */
  readonly facts: () => HostFacts;
  /** Looks at its nodes; returns whether anything has changed. */
  readonly look: () => Promise<boolean>;
}

/**
 * Opens the cluster that the settings name; undefined if they name none. Throws a {@link StartError} if they are wrong,
 * or a right is missing. A cluster that was there before and does not answer is waited for: jobs are accepted meanwhile.
 */
export async function openCluster(config: Config, opening: Opening): Promise<OpenCluster | undefined> {
  const { kubernetes } = config;
  if (!kubernetes) return undefined;
  const { installation, logsDir, env, emit } = opening;
  const warn = (message: string) => emit({ type: "server.warning", message });
  // loaded only where there is one
  const { findAccess } = await import("../providers/kubernetes/access.js");
  const { Cluster, isAway } = await import("../providers/kubernetes/cluster.js");
  const { KubernetesProvider } = await import("../providers/kubernetes/kubernetes-provider.js");
  const { Claims } = await import("../providers/kubernetes/claims.js");
  const { gpuTypesOf } = await import("../providers/kubernetes/nodes.js");
  const { additionsIn } = await import("../providers/kubernetes/additions.js");
  const { missingRights, namespaceUid } = await import("../providers/kubernetes/rights.js");
  try {
    const access = findAccess(env, kubernetes.context);
    const namespace = kubernetes.namespace ?? access.namespace ?? "default";
    const cluster = new Cluster(access);
    const lacks = await missingRights(cluster, namespace, kubernetes);
    const place = `${access.server} ${namespace}`;
    const known = opening.kept.read();
    if ("away" in lacks) {
      // which cluster it is can only be asked of it
      if (!known?.endsWith(` ${place}`)) throw new Error(lacks.away);
      warn(`${lacks.away}; workers start there once it does`);
    } else if (lacks.missing.length > 0) throw new Error(lacksRights(lacks.missing, namespace));
    const uid = "away" in lacks ? known?.split(" ")[0] : await namespaceUid(cluster, namespace);
    opening.kept.keep(`${uid} ${place}`);
    const { storageClass, accessMode } = kubernetes;
    const claims = new Claims(cluster, namespace, { installation, storageClass, accessMode });
    const provider = new KubernetesProvider({
      cluster,
      namespace,
      logsDir,
      installation,
      graceMs: config.stopGraceMs,
      gpuResource: kubernetes.gpuResource,
      gpuLabel: kubernetes.gpuLabel,
      claims,
      freezes: kubernetes.freezes,
      additions: kubernetes.podFile === undefined ? {} : additionsIn(kubernetes.podFile),
      warn,
    });
    const memory = { memoryMib: kubernetes.memoryGb * 1_024, gpuMemoryMib: kubernetes.gpuMemoryGb * 1_024 };
    let gpuTypes: readonly ClusterGpus[] | undefined;
    return {
      id: `kubernetes/${uid}`,
      provider,
      volumes: claims,
      facts: () => ({
        location: undefined,
        gpus: [],
        gpusEnforced: true,
        cpus: 0,
        memoryMib: 0,
        cannotRun: ["directory"],
        cluster: { ...memory, ...(gpuTypes ? { gpuTypes } : {}) },
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
  } catch (error) {
    throw new StartError(`Kubernetes: ${error instanceof Error ? error.message : error}.`);
  }
}

/** Logs of workers on any host, and what is masked there: a worker's handle names its provider. */
export function logsEverywhere(
  machine: Provider,
  cluster: Pick<OpenCluster, "provider"> | undefined,
  handleOf: (workerId: string) => WorkerHandle | undefined,
): Pick<Provider, "logs" | "hide"> {
  const of = (handle: WorkerHandle | undefined) =>
    cluster && handle?.provider === "kubernetes" ? cluster.provider : machine;
  return {
    logs: (workerId, handle, query) => of(handle).logs(workerId, handle, query),
    hide: (workerId, secret) => of(handleOf(workerId)).hide(workerId, secret),
  };
}

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
