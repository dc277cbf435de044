import Type, { type Static } from "typebox";
import { countries, dataCenters, limits } from "./limits/index.js";

const onOff = (description: string, fallback?: "on" | "off") =>
  Type.Union([Type.Literal("on"), Type.Literal("off")], { description, ...(fallback ? { default: fallback } : {}) });
const domainName = "[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?(\\.[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?)*";
const hostNamesPattern = `^${domainName}( *, *${domainName})*$`;
const whole = (description: string, fallback: number, minimum: number, maximum: number) =>
  Type.Integer({ description, default: fallback, minimum, maximum });

/** Every setting: its environment variable, its default and one sentence. The reference page is generated from it. */
export const settings = Type.Object({
  MILLRACE_HOST: Type.String({ description: "The address to listen on.", default: "127.0.0.1", minLength: 1 }),
  MILLRACE_PORT: whole("The port to listen on; 0 picks a free one.", 8000, 0, 65_535),
  MILLRACE_DATA_DIR: Type.String({
    description: "The directory that holds everything.",
    default: "./.millrace",
    minLength: 1,
  }),
  MILLRACE_DATABASE_URL: Type.Optional(
    Type.String({
      description:
        "The PostgreSQL (15 to 18) that servers share, as postgres://user:password@host:port/database; when absent SQLite in the data directory.",
      pattern: "^postgres(ql)?://[^\\s]+$",
    }),
  ),
  MILLRACE_API_KEY: Type.Optional(
    Type.String({
      description:
        "The bootstrap admin key, 16 to 256 visible characters; when absent one is made on the first start and kept in the data directory. A value that differs from the one before becomes the bootstrap key at the next start.",
      minLength: 16,
      maxLength: 256,
      pattern: "^[\\x21-\\x7e]+$",
    }),
  ),
  MILLRACE_SEAL_KEY: Type.Optional(
    Type.String({
      description: "64 hex digits that seal stored secrets; when absent a key is made and kept in the data directory.",
      pattern: "^[0-9a-fA-F]{64}$",
    }),
  ),
  MILLRACE_RATE_LIMITS: onOff("Whether the rate limits of the queue API and REST v2 are enforced.", "on"),
  MILLRACE_REQUESTS_PER_WORKER: whole(
    "Requests per 10 s for each worker that runs jobs: no rate limit of the queue API is below their sum.",
    100,
    0,
    1_000_000,
  ),
  MILLRACE_WORKER_URL: Type.Optional(
    Type.String({
      description: "The URL at which workers reach this server, if it is not the local one.",
      pattern: "^https?://[^\\s?#]+$",
    }),
  ),
  MILLRACE_START_TIMEOUT: whole(
    "Seconds a worker may take until it first asks for a job.",
    limits.startTimeoutMsDefault / 1_000,
    1,
    86_400,
  ),
  MILLRACE_STOP_GRACE: whole(
    "Seconds a worker may take to stop before it is killed.",
    limits.stopGraceMsDefault / 1_000,
    0,
    3_600,
  ),
  MILLRACE_FLASHBOOT_KEEP: whole(
    "Seconds a paused worker of an endpoint with FlashBoot is kept in memory.",
    limits.flashBootMs / 1_000,
    0,
    7 * 86_400,
  ),
  MILLRACE_AWAY_MAX: whole(
    "Seconds that workers stay alive without a server.",
    limits.awayMsDefault / 1_000,
    1,
    86_400,
  ),
  MILLRACE_AUDIT_DAYS: whole(
    "Days that entries of the audit log are kept.",
    limits.auditKeptMsDefault / 86_400_000,
    1,
    3_650,
  ),
  MILLRACE_DEMO: onOff("Whether the first start makes an example endpoint and runs a job through it.", "on"),
  MILLRACE_BANNER: onOff("Whether a start prints its addresses and a first command.", "on"),
  MILLRACE_PACKAGE_ADVICE: Type.String({
    description: "What the terminal advises when a Python handler lacks a package, whose name stands for {package}.",
    default: "add it to requirements.txt, or install it for the Python that runs the handler",
  }),
  MILLRACE_LOCAL_PROCESSES: onOff("Whether templates may name a directory of this machine as their image.", "on"),
  MILLRACE_CONTAINERS: onOff(
    "Whether templates may name a container image, run by the Docker engine that DOCKER_HOST, the current Docker context or the default socket lead to.",
    "on",
  ),
  MILLRACE_GPUS: Type.String({
    description:
      "The GPUs that workers may be given: all, none, or some by index or UUID as nvidia-smi names them, comma-separated.",
    default: "all",
    pattern: "^(all|none|(\\d{1,3}|GPU-[0-9a-fA-F-]{8,40})( *, *(\\d{1,3}|GPU-[0-9a-fA-F-]{8,40}))*)$",
  }),
  MILLRACE_ENFORCE_GPUS: Type.Optional(
    onOff(
      "Whether workers get the GPUs that their endpoint asks for or wait for them; by default if the host has GPUs.",
    ),
  ),
  MILLRACE_DOCKER_NETWORK: Type.String({
    default: "bridge",
    pattern: "^[A-Za-z0-9][A-Za-z0-9_.-]{0,127}$",
    description:
      "The engine's network for worker containers. On the default one they can reach each other: if users do not trust each other, name a network without that.",
  }),
  MILLRACE_DOCKER_PUBLISH: Type.Optional(
    Type.String({
      pattern: "^([0-9.]{7,15}|[0-9A-Fa-f:.]{2,45})$",
      description:
        "An address of this machine (0.0.0.0 for all) at which the ports of templates are published, each at a free port. Without it they can be reached only from this machine, at the container's own address.",
    }),
  ),
  MILLRACE_DOCKER_VOLUMES: onOff(
    "Whether network volumes are volumes of the Docker engine for containers, instead of directories of this machine.",
    "off",
  ),
  MILLRACE_KUBERNETES: onOff(
    "Whether container images may also run as pods of the Kubernetes cluster that KUBECONFIG, ~/.kube/config or the account of the pod this service runs in leads to. Needs MILLRACE_WORKER_URL.",
    "off",
  ),
  MILLRACE_PLACES: Type.Union(
    [
      Type.Literal("machines,cluster"),
      Type.Literal("cluster,machines"),
      Type.Literal("machines"),
      Type.Literal("cluster"),
    ],
    {
      default: "machines,cluster",
      description:
        "Where workers of container images run, in order of preference, if their endpoint names no place. One that is left out has only the endpoints that name it.",
    },
  ),
  MILLRACE_KUBERNETES_CONTEXT: Type.Optional(
    Type.String({
      minLength: 1,
      description:
        "The kubeconfig's context to use; by default its current one. Several, comma-separated, are several clusters in order of preference, which endpoints name as cluster/ and the context: workers for which one has no room go to the next.",
    }),
  ),
  MILLRACE_KUBERNETES_NAMESPACE: Type.Optional(
    Type.String({
      pattern: "^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$",
      description:
        "The namespace of workers' pods; by default the one of the context or of the pod this service runs in, else default.",
    }),
  ),
  MILLRACE_KUBERNETES_POD: Type.Optional(
    Type.String({
      minLength: 1,
      description:
        "A YAML file with what every worker's pod has besides: labels and annotations in metadata; nodeSelector, tolerations, priorityClassName, runtimeClassName, serviceAccountName and others in spec. Further documents of the file, each with a name, are classes of pods that an endpoint may ask for with podClass.",
    }),
  ),
  MILLRACE_KUBERNETES_MEMORY: whole(
    "GB of memory for a pod whose endpoint asks for none and has no GPUs.",
    limits.podMemoryGbDefault,
    1,
    65_536,
  ),
  MILLRACE_KUBERNETES_GPU_MEMORY: whole(
    "GB of memory for each GPU of a pod whose endpoint asks for no memory.",
    limits.podGpuMemoryGbDefault,
    1,
    65_536,
  ),
  MILLRACE_KUBERNETES_FREEZE: onOff(
    "Whether idle workers of FlashBoot endpoints are frozen in their pods, by a command that is run there. It needs the right to create and get pods/exec, and images with a shell.",
    "off",
  ),
  MILLRACE_KUBERNETES_ROUTE: Type.Optional(
    Type.Union([Type.Literal("pods"), Type.Literal("api-server")], {
      description:
        "How requests of load balancing endpoints reach workers in the cluster: at their pods' addresses, or through the API server, which forwards a port and needs the right to create and get pods/portforward. By default pods for a server in a pod of the cluster, and api-server for any other.",
    }),
  ),
  MILLRACE_KUBERNETES_STORAGE_CLASS: Type.Optional(
    Type.String({
      minLength: 1,
      description: "The storage class of claims for network volumes; by default the cluster's own default.",
    }),
  ),
  MILLRACE_KUBERNETES_ACCESS_MODE: Type.Union(
    [Type.Literal("ReadWriteOnce"), Type.Literal("ReadWriteMany"), Type.Literal("ReadWriteOncePod")],
    {
      default: "ReadWriteOnce",
      description:
        "The access mode of claims for network volumes. ReadWriteOnce, which every storage class has, keeps all workers of a volume on one node.",
    },
  ),
  MILLRACE_KUBERNETES_GPU_RESOURCE: Type.String({
    default: "nvidia.com/gpu",
    minLength: 1,
    description: "The resource by which the cluster's device plugin counts GPUs.",
  }),
  MILLRACE_KUBERNETES_GPU_LABEL: Type.String({
    default: "nvidia.com/gpu.product",
    minLength: 1,
    description: "The label of nodes that names their GPUs' type, with a dash for each blank.",
  }),
  MILLRACE_VOLUME_QUOTAS: onOff(
    "Whether the size of network volumes is enforced, if their file system can (btrfs; XFS and ext4 with project quotas; as root).",
    "on",
  ),
  MILLRACE_WEBHOOK_PRIVATE: Type.Optional(
    onOff(
      "Whether webhooks may go to private addresses, and to ports below 1024 other than 80 and 443; by default only while we listen on loopback with neither MILLRACE_TRUST_PROXY nor MILLRACE_HOST_NAMES set, either of which means that a proxy makes this server public.",
    ),
  ),
  MILLRACE_LB_DOMAIN: Type.Optional(
    Type.String({
      description:
        "The domain under which each load-balancing endpoint has a host name of its own, {endpoint_id}.{domain}.",
      pattern: `^${domainName}$`,
    }),
  ),
  MILLRACE_HOST_NAMES: Type.Optional(
    Type.String({
      description:
        "The names under which clients reach this server, comma-separated. Requests to other names are refused; loopback's names, IP addresses and MILLRACE_LB_DOMAIN are always accepted. By default every name is accepted, except that a server that listens on loopback without a trusted proxy accepts only loopback's.",
      pattern: hostNamesPattern,
    }),
  ),
  MILLRACE_SERVER_ADDRESS: Type.Optional(
    Type.String({
      description:
        "host:port where the other servers of the database reach this one; by default MILLRACE_HOST (or the host of MILLRACE_WORKER_URL, if MILLRACE_HOST means every address) and the port.",
      pattern:
        "^(\\[[0-9A-Fa-f:.]+\\]|[A-Za-z0-9.-]+):([1-9]\\d{0,3}|[1-5]\\d{4}|6[0-4]\\d{3}|65[0-4]\\d{2}|655[0-2]\\d|6553[0-5])$",
    }),
  ),
  MILLRACE_TRUST_PROXY: onOff(
    "Whether X-Forwarded headers are trusted: for the client's address in the audit log, and in load-balanced requests. Turn it on only behind a proxy that sets them itself.",
    "off",
  ),
  MILLRACE_PUBLIC_CATALOG: onOff(
    "Whether GraphQL answers queries for GPU types, data centres and the (empty) lists of the hub without a key: some clients look there before they have one.",
    "off",
  ),
  MILLRACE_LOCATION: Type.Optional(
    Type.Union(
      [...countries, ...dataCenters].map((code) => Type.Literal(code)),
      {
        description: "The country or data centre of this host, for endpoints that name locations or dataCenterIds.",
      },
    ),
  ),
  MILLRACE_LOG_LEVEL: Type.Union(
    ["debug", "info", "warn", "error", "silent"].map((level) => Type.Literal(level)),
    { description: "The lowest level that is logged.", default: "info" },
  ),
  MILLRACE_LOG_FORMAT: Type.Union(
    ["auto", "lines", "json"].map((format) => Type.Literal(format)),
    {
      description:
        "How events are told: lines for people, with what handlers print among them, or JSON. auto: lines on a terminal, JSON elsewhere.",
      default: "auto",
    },
  ),
  MILLRACE_OTLP_URL: Type.Optional(
    Type.String({
      description:
        "An OpenTelemetry collector, such as http://127.0.0.1:4318: each job's trace goes there, from the client's traceparent to the webhook. When absent nothing is traced.",
      pattern: "^https?://[^\\s?#]+$",
    }),
  ),
  MILLRACE_OTLP_HEADERS: Type.Optional(
    Type.String({
      description: "Headers for the collector, comma-separated: name=value,name=value.",
      pattern: "^[!#$%&'*+.^_`|~0-9A-Za-z-]+=[^,]*(,[!#$%&'*+.^_`|~0-9A-Za-z-]+=[^,]*)*$",
    }),
  ),
  MILLRACE_COMMIT: Type.Optional(
    Type.String({
      pattern: "^[0-9a-f]{7,40}$",
      description: "The commit that this server was built from, for /healthz: images set it, a clone knows it.",
    }),
  ),
});
/** The parsed settings, with their defaults. */
export type Settings = Static<typeof settings>;
