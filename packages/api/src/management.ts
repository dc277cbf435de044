import Type, { type Static } from "typebox";

export const scalerTypes = ["QUEUE_DELAY", "REQUEST_COUNT"] as const;
export const computeTypes = ["GPU", "CPU"] as const;
export const endpointTypes = ["QB", "LB"] as const;
export const flashBootTypes = ["OFF", "FLASHBOOT", "PRIORITY_FLASHBOOT"] as const;
/** The countries of the contract (Endpoint: locations). */
export const countries = ["CZ", "FR", "GB", "NO", "RO", "US"] as const;
/** The GPU tiers of the contract (Endpoint: gpuIds). */
export const gpuTiers = [
  "AMPERE_16",
  "AMPERE_24",
  "ADA_24",
  "AMPERE_48",
  "ADA_48_PRO",
  "AMPERE_80",
  "ADA_80_PRO",
] as const;
export const templateCategories = ["NVIDIA", "AMD", "CPU"] as const;

const text = (description: string, options = {}) => Type.String({ description, maxLength: 10_000, ...options });
/** No control characters: names are shown in logs and on pages. */
export const visible = "^[^\\u0000-\\u001f\\u007f-\\u009f]*$";
/** The same of texts that may have several lines. */
export const visibleLines = "^[^\\u0000-\\u0008\\u000b\\u000c\\u000e-\\u001f\\u007f-\\u009f]*$";
const list = (description: string, options = {}) =>
  Type.Array(Type.String({ maxLength: 1_000, ...options }), { description, maxItems: 100 });
const choice = <T extends readonly string[]>(names: T, description: string) =>
  Type.Union(
    names.map((name) => Type.Literal(name as T[number])),
    { description },
  );
/** `null` clears a field on modify, so every optional field of an update takes it. */
const orNull = <T extends Type.TSchema>(schema: T) => Type.Optional(Type.Union([schema, Type.Null()]));

/** Names from a list, separated by commas, in a text. */
const separated = (names: readonly string[]) => ({ pattern: `^(?:(?:${names.join("|")})?(?: *, *|$))*$` });

const Env = Type.Record(Type.String(), Type.String({ maxLength: 131_072, pattern: "^[^\\u0000]*$" }), {
  description: "Environment variables.",
  propertyNames: { pattern: "^[A-Za-z_][A-Za-z0-9_.-]*$" },
});

const endpointFields = {
  allowedCudaVersions: orNull(list("CUDA versions that suit; empty is any.", { pattern: visible })),
  cpuFlavorIds: orNull(list("CPU flavours in order of preference.", { pattern: visible })),
  dataCenterIds: orNull(list("Data centres that suit; empty is any.", { pattern: visible })),
  env: orNull(Env),
  executionTimeoutMs: orNull(
    Type.Union([Type.Literal(0), Type.Integer({ minimum: 5_000, maximum: 604_800_000 })], {
      description: "Milliseconds a job may run; 0 is the default.",
      title: "a whole number of milliseconds from 5000 to 604800000, or 0 for the default",
    }),
  ),
  flashboot: orNull(Type.Boolean({ description: "The same as flashBootType FLASHBOOT." })),
  flashBootType: orNull(choice([...flashBootTypes, ""], "An empty text keeps what it is.")),
  gpuCount: orNull(Type.Integer({ minimum: 1, maximum: 64, description: "GPUs for each worker." })),
  gpuIds: orNull(text("GPU tiers, comma-separated, in order of preference.", separated(gpuTiers))),
  gpuTypeIds: orNull(list("GPU type names in order of preference.")),
  idleTimeout: orNull(Type.Integer({ minimum: 1, maximum: 3600, description: "Seconds before an idle worker stops." })),
  instanceIds: orNull(list("Instance types of CPU endpoints.", { pattern: visible })),
  locations: orNull(text("Country codes, comma-separated; empty is any.", separated(countries))),
  minCudaVersion: orNull(text("The lowest CUDA version that suits.", { pattern: visible })),
  name: orNull(Type.String({ maxLength: 191, pattern: visible, description: "A name; it need not be unique." })),
  networkVolumeId: orNull(text("The network volume to mount.")),
  networkVolumeIds: orNull(list("Network volumes, where there are several.")),
  scalerType: orNull(choice(scalerTypes, "How workers are scaled.")),
  scalerValue: orNull(
    Type.Integer({ minimum: 1, maximum: 1_000_000, description: "Seconds of delay, or requests per worker." }),
  ),
  vcpuCount: orNull(
    Type.Integer({ minimum: 1, maximum: 1_024, description: "vCPUs of each worker of a CPU endpoint." }),
  ),
  workersMax: orNull(Type.Integer({ minimum: 0, maximum: 10_000, description: "The most workers at a time." })),
  workersMin: orNull(Type.Integer({ minimum: 0, maximum: 10_000, description: "The fewest workers at a time." })),
};

/** Body of `POST /endpoints`. */
export const EndpointCreate = Type.Object({
  templateId: text("The template to start workers from."),
  computeType: orNull(choice(computeTypes, "GPU or CPU workers.")),
  type: orNull(choice(endpointTypes, "QB: queue-based. LB: load-balancing.")),
  ...endpointFields,
});
export type EndpointCreate = Static<typeof EndpointCreate>;

/** Body of `PATCH /endpoints/{id}` and `POST /endpoints/{id}/update`: only what is sent changes; null clears. */
export const EndpointUpdate = Type.Object({ templateId: Type.Optional(text("The template.")), ...endpointFields });
export type EndpointUpdate = Static<typeof EndpointUpdate>;

/** 1 to 65535, and http or tcp. */
const portPattern = "^([1-9]\\d{0,3}|[1-5]\\d{4}|6[0-4]\\d{3}|65[0-4]\\d{2}|655[0-2]\\d|6553[0-5])/(http|tcp)$";

const templateFields = {
  category: orNull(choice(templateCategories, "The compute category.")),
  containerDiskInGb: orNull(Type.Integer({ minimum: 0, maximum: 100_000, description: "Container disk, in GB." })),
  containerRegistryAuthId: orNull(text("Credentials of a private image.")),
  dockerEntrypoint: orNull(list("Overrides the image's ENTRYPOINT; [] keeps it.", { pattern: visibleLines })),
  dockerStartCmd: orNull(list("Overrides the image's CMD; [] keeps it.", { pattern: visibleLines })),
  env: orNull(Env),
  isPublic: orNull(Type.Boolean()),
  isServerless: orNull(Type.Boolean()),
  ports: orNull(
    Type.Array(Type.String({ pattern: portPattern, title: "number/http or number/tcp, as in 8888/http" }), {
      description: "The ports that it listens on.",
      maxItems: 100,
    }),
  ),
  readme: orNull(Type.String({ maxLength: 100_000, pattern: visibleLines })),
  volumeInGb: orNull(Type.Integer({ minimum: 0, maximum: 100_000 })),
  volumeMountPath: orNull(text("Where a volume is mounted: an absolute path, not below /proc, /sys or /dev.")),
};

/** Body of `POST /templates`. */
export const TemplateCreate = Type.Object({
  name: Type.String({ minLength: 1, maxLength: 191, pattern: visible }),
  imageName: Type.String({ minLength: 1, maxLength: 4_096, description: "A container image, or a path to a handler." }),
  ...templateFields,
});
export type TemplateCreate = Static<typeof TemplateCreate>;

/** Body of `PATCH /templates/{id}` and `POST /templates/{id}/update`. */
export const TemplateUpdate = Type.Object({
  name: Type.Optional(Type.String({ minLength: 1, maxLength: 191, pattern: visible })),
  imageName: Type.Optional(Type.String({ minLength: 1, maxLength: 4_096 })),
  ...templateFields,
});
export type TemplateUpdate = Static<typeof TemplateUpdate>;

/** A template as it is shown. */
export const Template = Type.Object({
  id: Type.String(),
  name: Type.String(),
  imageName: Type.String(),
  category: choice(templateCategories, "The compute category."),
  containerDiskInGb: Type.Integer(),
  containerRegistryAuthId: Type.Optional(Type.String()),
  dockerEntrypoint: Type.Array(Type.String()),
  dockerStartCmd: Type.Array(Type.String()),
  earned: Type.Number(),
  env: Type.Record(Type.String(), Type.String()),
  isPublic: Type.Boolean(),
  isRunpod: Type.Boolean(),
  isServerless: Type.Boolean(),
  ports: Type.Array(Type.String()),
  readme: Type.String(),
  runtimeInMin: Type.Integer(),
  volumeInGb: Type.Integer(),
  volumeMountPath: Type.String(),
});
export type Template = Static<typeof Template>;

const time = () => Type.String({ format: "date-time" });
const ms = (description: string) => Type.Optional(Type.Integer({ minimum: 0, description }));

/** How long each step of a worker's start took, in milliseconds. */
export const ColdStart = Type.Object({
  placeMs: ms("Until a host had what it needs, where it had to wait for that."),
  imageMs: ms("Until its image was there."),
  createMs: ms("Until its container was made."),
  startMs: ms("Until its process was started."),
  readyMs: ms("Until it first asked for a job, or first was healthy."),
  totalMs: ms("All of that."),
  outputMs: ms("From then to its first output."),
});

/** A worker, with its life. */
export const Worker = Type.Object({
  id: Type.String(),
  endpointId: Type.String(),
  version: Type.Integer(),
  desiredStatus: Type.String({ description: "RUNNING or EXITED." }),
  state: Type.String({
    description:
      "initializing, idle, running, throttled, unhealthy, outdated, paused, closing (its last jobs), stopping or ended.",
  }),
  since: time(),
  why: Type.Optional(Type.String()),
  doing: Type.Optional(Type.String({ description: "What its start is at, where that takes long." })),
  jobs: Type.Integer({ minimum: 0, description: "How many jobs it holds." }),
  gpus: Type.Array(Type.Object({ id: Type.String(), name: Type.String() })),
  vcpuCount: Type.Optional(Type.Integer()),
  memoryInGb: Type.Optional(Type.Number()),
  privateIp: Type.Optional(Type.String({ description: "A container's own address, reached from its machine alone." })),
  portMappings: Type.Optional(
    Type.Record(Type.String(), Type.Integer(), {
      description: "Its template's ports, and the port of its machine at which each is published.",
    }),
  ),
  publicIp: Type.Optional(Type.String({ description: "The address at which they are published, where it is one." })),
  lastStartedAt: Type.Optional(time()),
  coldStart: ColdStart,
  timeline: Type.Array(Type.Object({ phase: Type.String(), at: time(), afterMs: Type.Integer({ minimum: 0 }) })),
  exit: Type.Optional(
    Type.Object({
      code: Type.Optional(Type.Integer()),
      signal: Type.Optional(Type.String()),
      cause: Type.Optional(Type.String({ description: "image, memory, gpu or start." })),
      note: Type.Optional(Type.String()),
    }),
  ),
});

const Percentiles = Type.Optional(Type.Object({ p50: Type.Integer(), p90: Type.Integer(), p99: Type.Integer() }));

/** How an endpoint's workers started: percentiles of each step, in milliseconds. */
export const ColdStarts = Type.Object({
  starts: Type.Integer({ minimum: 0 }),
  totalMs: Percentiles,
  placeMs: Percentiles,
  imageMs: Percentiles,
  createMs: Percentiles,
  startMs: Percentiles,
  readyMs: Percentiles,
  outputMs: Percentiles,
});

/** A version of an endpoint: what it is made of, and how it went. */
export const ReleaseView = Type.Object({
  version: Type.Integer({ minimum: 1 }),
  madeAt: time(),
  state: Type.String({ description: "unproven, rolling, current, stopped (its workers failed at start) or past." }),
  workers: Type.Integer({ minimum: 0 }),
  imageName: Type.String(),
  templateId: Type.String(),
  env: Type.Record(Type.String(), Type.String()),
  dockerEntrypoint: Type.Array(Type.String()),
  dockerStartCmd: Type.Array(Type.String()),
  gpuTypeIds: Type.Array(Type.String()),
  gpuCount: Type.Integer(),
  computeType: Type.String(),
  rollbackOf: Type.Optional(Type.Integer()),
  provenAt: Type.Optional(time()),
  stoppedAt: Type.Optional(time()),
  why: Type.Optional(Type.String()),
});

/** An endpoint as it is shown. */
export const Endpoint = Type.Object({
  id: Type.String(),
  name: Type.String(),
  userId: Type.String(),
  templateId: Type.String(),
  template: Type.Optional(Template),
  workers: Type.Optional(Type.Array(Worker)),
  version: Type.Integer(),
  createdAt: Type.String({ format: "date-time" }),
  type: choice(endpointTypes, "QB or LB."),
  computeType: choice(computeTypes, "GPU or CPU."),
  allowedCudaVersions: Type.Optional(Type.Array(Type.String())),
  cpuFlavorIds: Type.Optional(Type.Array(Type.String())),
  dataCenterIds: Type.Array(Type.String()),
  env: Type.Record(Type.String(), Type.String()),
  executionTimeoutMs: Type.Integer(),
  flashboot: Type.Boolean(),
  flashBootType: choice(flashBootTypes, "OFF, FLASHBOOT or PRIORITY_FLASHBOOT."),
  gpuCount: Type.Integer(),
  gpuIds: Type.String(),
  gpuTypeIds: Type.Array(Type.String()),
  idleTimeout: Type.Integer(),
  instanceIds: Type.Array(Type.String()),
  locations: Type.Optional(Type.String()),
  minCudaVersion: Type.Optional(Type.String()),
  networkVolumeId: Type.Optional(Type.String()),
  networkVolumeIds: Type.Array(Type.String()),
  scalerType: choice(scalerTypes, "How workers are scaled."),
  scalerValue: Type.Integer(),
  vcpuCount: Type.Optional(Type.Integer()),
  workersMax: Type.Integer(),
  workersMin: Type.Integer(),
});
export type Endpoint = Static<typeof Endpoint>;

const Size = Type.Integer({ minimum: 0, maximum: 4_000, description: "Size in GB." });
/** Body of `POST /networkvolumes`. */
export const VolumeCreate = Type.Object({
  name: Type.String({ minLength: 1, maxLength: 191, pattern: visible }),
  size: Size,
  dataCenterId: Type.String({ minLength: 1, maxLength: 100, pattern: visible }),
});
export type VolumeCreate = Static<typeof VolumeCreate>;
/** Body of `PATCH /networkvolumes/{id}`. */
export const VolumeUpdate = Type.Object({
  name: Type.Optional(Type.String({ minLength: 1, maxLength: 191, pattern: visible })),
  size: Type.Optional(Size),
});
export type VolumeUpdate = Static<typeof VolumeUpdate>;
/** A network volume as it is shown. */
export const Volume = Type.Object({
  id: Type.String(),
  name: Type.String(),
  size: Type.Integer(),
  dataCenterId: Type.String(),
  usedBytes: Type.Optional(Type.Integer({ description: "What it held when it was last measured." })),
  usedAt: Type.Optional(Type.String({ format: "date-time", description: "When that was." })),
  usedAtLeast: Type.Optional(
    Type.Boolean({ description: "true: not all of it could be read; it holds this much at least." }),
  ),
  sizePassed: Type.Optional(Type.Boolean({ description: "Whether it holds more than its size." })),
  sizeEnforced: Type.Optional(
    Type.Boolean({
      description:
        "Whether its file system lets nobody write more than its size; false: that is only told, by sizePassed.",
    }),
  ),
});
export type Volume = Static<typeof Volume>;

/** Body of `POST /containerregistryauth`. */
export const RegistryAuthCreate = Type.Object({
  name: Type.String({ minLength: 1, maxLength: 191, pattern: visible, description: "A name; unique among yours." }),
  username: Type.String({ minLength: 1, maxLength: 1_000, description: "The registry's user." }),
  password: Type.String({ minLength: 1, maxLength: 20_000, description: "Its password or token; it is never shown." }),
});
export type RegistryAuthCreate = Static<typeof RegistryAuthCreate>;
/** Credentials of a container registry as they are shown. */
export const RegistryAuth = Type.Object({ id: Type.String(), name: Type.String() });
export type RegistryAuth = Static<typeof RegistryAuth>;

/** One scaling decision: what was known, what was done, and why, for as long as it stayed the same. */
export const ScalingDecision = Type.Object({
  from: Type.String({ format: "date-time" }),
  until: Type.String({ format: "date-time" }),
  times: Type.Integer({ minimum: 1 }),
  inputs: Type.Record(Type.String(), Type.Unknown()),
  outcome: Type.String(),
  reason: Type.String(),
});

/** One webhook delivery with its attempts. */
export const WebhookDelivery = Type.Object({
  id: Type.String(),
  jobId: Type.String(),
  url: Type.String(),
  state: Type.String({ description: "pending, delivered or failed." }),
  nextAttemptAt: Type.Optional(Type.String({ format: "date-time" })),
  attempts: Type.Array(
    Type.Object({
      at: Type.String({ format: "date-time" }),
      status: Type.Optional(Type.Integer()),
      error: Type.Optional(Type.String()),
      durationMs: Type.Integer(),
    }),
  ),
});

/** A line that a worker printed. */
export const LogLine = Type.Object({
  at: Type.String({ description: "When it was printed, RFC 3339." }),
  workerId: Type.String(),
  stream: Type.Union([Type.Literal("stdout"), Type.Literal("stderr")]),
  text: Type.String({ description: "As the worker printed it, but for secrets." }),
  jobId: Type.Optional(Type.String({ description: "Whose line it is, where the worker has marked it." })),
  level: Type.Optional(Type.String({ description: "DEBUG, INFO, WARN, ERROR, where the worker has marked it." })),
  message: Type.Optional(Type.String({ description: "The text without its mark." })),
});
export type LogLine = Static<typeof LogLine>;
