import { createHash } from "node:crypto";
import type {
  Container,
  Pod,
  PodSpec,
  ResourceRequirements,
  Secret,
  Toleration,
  Volume,
  VolumeMount,
} from "kubernetes-types/core/v1.js";
import type { ObjectMeta } from "kubernetes-types/meta/v1.js";
import type { HiddenSpan } from "../../domain/access/secret.js";
import { limits } from "../../limits/index.js";
import type { ImageSpec } from "../../provider.js";
import { keptCapabilities, registryOf } from "../images/container.js";
import { affinityOf, mountLabel } from "./affinity.js";

/** The name of a worker's pod. */
export const nameOf = (workerId: string): string => `millrace-${workerId}`;
/** Tells apart the attempts to start a worker, each of which has its own secret. */
const attemptOf = ({ env }: ImageSpec): string =>
  createHash("sha256")
    .update(env.RUNPOD_AI_API_KEY ?? "")
    .digest("hex")
    .slice(0, 10);
/** The name of the secret with a worker's environment, and of the one with its registry's credentials. */
const secretNameOf = (spec: ImageSpec): string => `${nameOf(spec.workerId)}-${attemptOf(spec)}`;
const pullNameOf = (spec: ImageSpec): string => `${secretNameOf(spec)}-pull`;

/** Whether a pod is of this attempt to start its worker, and not about to go. */
export const isOfAttempt = ({ metadata, spec: made }: Pod, spec: ImageSpec): boolean =>
  metadata?.deletionTimestamp === undefined && environmentOf(made) === secretNameOf(spec);

/** The name of the secret that a pod takes its environment from. */
export const environmentOf = (spec: PodSpec | undefined): string | undefined =>
  spec?.containers.find(({ name }) => name === containerName)?.envFrom?.[0]?.secretRef?.name;

export const containerName = "worker";
export const workerLabel = "millrace.worker";
export const installationLabel = "millrace.installation";
const hiddenAnnotation = "millrace.hidden";
/** Keeps a pod from nodes until its registry's credentials are there: without them its image would be asked for in vain. */
export const credentialsGate = "millrace/credentials";

/** What an operator adds to every pod: metadata, and fields of its specification. */
export interface PodAdditions {
  readonly metadata?: Pick<ObjectMeta, "labels" | "annotations">;
  readonly spec?: Partial<PodSpec>;
}

/** How pods are made in a cluster. */
export interface PodSettings {
  /** Tells apart the workers of several services in one namespace. */
  readonly installation: string;
  /** How long a worker that was asked to stop may take. */
  readonly graceMs: number;
  readonly gpuResource: string;
  /** The label of nodes that names their GPUs' type. */
  readonly gpuLabel: string;
  /** Whether a volume can be mounted on one node at a time only. */
  readonly hasVolumesOfOneNode?: boolean;
  readonly additions: PodAdditions;
  /** The same for pods of endpoints that name a class. */
  readonly classes?: ReadonlyMap<string, PodAdditions>;
}

/** The claim of a network volume. */
export const claimOf = (volumeId: string): string => `millrace-volume-${volumeId.toLowerCase()}`;

/** A pod that a worker runs in: it may do no more than its image's own processes need. */
export function podOf(spec: ImageSpec, settings: PodSettings): Pod {
  const { workerId, from, entrypoint, command, mounts, ports = [], hidden = [] } = spec;
  const { installation, graceMs } = settings;
  const additions = additionsFor(spec, settings);
  const container: Container = {
    name: containerName,
    image: from.image,
    ...(entrypoint.length > 0 ? { command: entrypoint.map(literal) } : {}),
    ...(command.length > 0 ? { args: command.map(literal) } : {}),
    envFrom: [{ secretRef: { name: secretNameOf(spec) } }],
    ports: ports.map((containerPort) => ({ containerPort })),
    resources: resourcesOf(spec, settings),
    volumeMounts: [{ name: "shm", mountPath: "/dev/shm" }, ...mounts.map(mountOf)],
    securityContext: {
      allowPrivilegeEscalation: false,
      capabilities: { drop: ["ALL"], add: keptCapabilities },
      seccompProfile: { type: "RuntimeDefault" },
    },
  };
  const affinity = affinityOf(spec, settings, additions.spec?.affinity);
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      name: nameOf(workerId),
      labels: {
        ...additions.metadata?.labels,
        "app.kubernetes.io/name": "millrace-worker",
        "app.kubernetes.io/managed-by": "millrace",
        [installationLabel]: installation,
        [workerLabel]: workerId,
        ...Object.fromEntries(mounts.map(({ volumeId }) => [mountLabel(volumeId), ""])),
      },
      annotations: {
        // a job is lost time if its node is emptied to save one
        "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
        ...additions.metadata?.annotations,
        [hiddenAnnotation]: JSON.stringify(hidden),
      },
    },
    spec: {
      ...additions.spec,
      tolerations: tolerationsOf(additions.spec),
      ...(affinity ? { affinity } : {}),
      restartPolicy: "Never",
      // the pod's first process is not the worker's, so that it has the usual effect of signals
      shareProcessNamespace: true,
      automountServiceAccountToken: additions.spec?.automountServiceAccountToken ?? false,
      enableServiceLinks: false,
      terminationGracePeriodSeconds: Math.max(1, Math.ceil(graceMs / 1_000)),
      ...pullSecrets(spec, additions.spec),
      ...gates(spec, additions.spec),
      containers: [container],
      volumes: [...(additions.spec?.volumes ?? []), ...volumesOf(spec)],
    },
  };
}

function additionsFor({ podClass }: ImageSpec, { additions, classes }: PodSettings): PodAdditions {
  if (podClass === undefined) return additions;
  const own = classes?.get(podClass);
  if (!own) throw new Error(`the pod class '${podClass}' of its endpoint is not in MILLRACE_KUBERNETES_POD any more`);
  return own;
}

/** Kubernetes replaces $(NAME) in commands, and reads $$ as $. */
const literal = (word: string): string => word.replaceAll("$", "$$$$");

/** Pods leave a node that does not answer after 30 s, as workers leave a silent host; operators may say otherwise. */
const tolerationsOf = (added: Partial<PodSpec> = {}): Toleration[] => [
  ...["not-ready", "unreachable"].map((state) => ({
    key: `node.kubernetes.io/${state}`,
    operator: "Exists",
    effect: "NoExecute",
    tolerationSeconds: limits.podLostMs / 1_000,
  })),
  ...(added.tolerations ?? []),
];

function resourcesOf(
  { cpus, memoryMib, diskGb, gpuWish }: ImageSpec,
  { gpuResource }: PodSettings,
): ResourceRequirements {
  // more than was asked for is memory that another worker was promised; idle processors may be used by all
  const memory = memoryMib === undefined ? {} : { memory: mebibytes(memoryMib) };
  const disk = diskGb === undefined || diskGb === 0 ? {} : { "ephemeral-storage": `${diskGb}G` };
  const gpus = gpuWish === undefined || gpuWish.count === 0 ? {} : { [gpuResource]: String(gpuWish.count) };
  const cpu = cpus === undefined ? {} : { cpu: `${Math.round(cpus * 1_000)}m` };
  // the limit would be requested, too: few workers write as much as they may
  const someDisk = "ephemeral-storage" in disk ? { "ephemeral-storage": "1G" } : {};
  return { requests: { ...cpu, ...memory, ...someDisk, ...gpus }, limits: { ...memory, ...disk, ...gpus } };
}

const mebibytes = (count: number): string => `${Math.floor(count)}Mi`;

const mountOf = ({ target, volumeId }: ImageSpec["mounts"][number]): VolumeMount => ({
  name: claimOf(volumeId),
  mountPath: target,
});

function volumesOf({ mounts, memoryMib }: ImageSpec): Volume[] {
  const claims = [...new Set(mounts.map(({ volumeId }) => claimOf(volumeId)))];
  return [
    // the usual 64 MB are too little for what frameworks pass between processes; it counts as the worker's memory
    {
      name: "shm",
      emptyDir: { medium: "Memory", ...(memoryMib === undefined ? {} : { sizeLimit: mebibytes(memoryMib) }) },
    },
    ...claims.map((claimName) => ({ name: claimName, persistentVolumeClaim: { claimName } })),
  ];
}

function pullSecrets(spec: ImageSpec, added: Partial<PodSpec> = {}): Pick<PodSpec, "imagePullSecrets"> {
  const { from } = spec;
  const all = [...(added.imagePullSecrets ?? []), ...(from.auth ? [{ name: pullNameOf(spec) }] : [])];
  return all.length === 0 ? {} : { imagePullSecrets: all };
}

function gates({ from }: ImageSpec, added: Partial<PodSpec> = {}): Pick<PodSpec, "schedulingGates"> {
  // a pod that names its node cannot have any
  if (!from.auth || added.nodeName !== undefined) return {};
  return { schedulingGates: [...(added.schedulingGates ?? []), { name: credentialsGate }] };
}

/** A worker's environment and its registry's credentials, as secrets that go with its pod. */
export function secretsOf(spec: ImageSpec, pod: Pod, { installation }: PodSettings): Secret[] {
  const { workerId, from, gpuWish } = spec;
  const env = { ...spec.env };
  // the device plugin says which GPUs a worker has; the variable would give it all of its node's
  if (gpuWish) delete env.NVIDIA_VISIBLE_DEVICES;
  const { name = "", uid = "" } = pod.metadata ?? {};
  const metadata = (own: string): ObjectMeta => ({
    name: own,
    labels: { "app.kubernetes.io/managed-by": "millrace", [installationLabel]: installation, [workerLabel]: workerId },
    ownerReferences: [{ apiVersion: "v1", kind: "Pod", name, uid }],
  });
  const environment: Secret = {
    apiVersion: "v1",
    kind: "Secret",
    metadata: metadata(secretNameOf(spec)),
    immutable: true,
    stringData: env,
  };
  if (!from.auth) return [environment];
  const config = { auths: { [registryOf(from.image)]: from.auth } };
  const credentials: Secret = {
    apiVersion: "v1",
    kind: "Secret",
    metadata: metadata(pullNameOf(spec)),
    immutable: true,
    type: "kubernetes.io/dockerconfigjson",
    stringData: { ".dockerconfigjson": JSON.stringify(config) },
  };
  return [credentials, environment];
}

/** Where a worker's environment holds secrets. */
export const hiddenOf = ({ metadata }: Pod): HiddenSpan[] =>
  JSON.parse(metadata?.annotations?.[hiddenAnnotation] ?? "[]") as HiddenSpan[];
