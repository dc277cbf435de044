import Type, { type Static } from "typebox";
import { choice, Env, list, orNull, text, time, visible } from "./fields.js";
import { cudaVersions, machineFields } from "./machines.js";
import { Template } from "./templates.js";
import { Worker } from "./workers.js";

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

const endpointFields = {
  ...machineFields,
  env: orNull(Env),
  executionTimeoutMs: orNull(
    Type.Union([Type.Literal(0), Type.Integer({ minimum: 5_000, maximum: 604_800_000 })], {
      description: "Milliseconds a job may run; 0 means the default.",
      title: "a whole number of milliseconds from 5000 to 604800000, or 0 for the default",
    }),
  ),
  flashboot: orNull(Type.Boolean({ description: "The same as flashBootType FLASHBOOT." })),
  flashBootType: orNull(
    choice(
      [...flashBootTypes, ""],
      "Whether idle workers are paused with their memory, so that they go on at once. An empty text leaves it unchanged.",
    ),
  ),
  gpuCount: orNull(Type.Integer({ minimum: 1, maximum: 64, description: "Number of GPUs per worker." })),
  gpuIds: orNull(
    text("GPU tiers or types, comma-separated, in order of preference; -NVIDIA L4 takes one out of its tier."),
  ),
  gpuTypeIds: orNull(list("GPU type names in order of preference.")),
  idleTimeout: orNull(Type.Integer({ minimum: 1, maximum: 3600, description: "Seconds before an idle worker stops." })),
  instanceIds: orNull(
    list("Instances of CPU endpoints, in order of preference.", {
      pattern: "^cpu\\d+[cgm]-[1-9]\\d{0,3}-[1-9]\\d{0,4}$",
      title: "flavour-vCPUs-GB, as in cpu3g-2-8",
    }),
  ),
  locations: orNull(text("Country codes or data centres, comma-separated; empty means any.")),
  minCudaVersion: orNull(
    choice([...cudaVersions, ""], "The lowest acceptable CUDA version; an empty text leaves it unchanged."),
  ),
  name: orNull(Type.String({ maxLength: 191, pattern: visible, description: "A name; it need not be unique." })),
  networkVolumeId: orNull(text("The network volume to mount.")),
  networkVolumeIds: orNull(list("Network volumes, if there are several.")),
  place: orNull(
    Type.String({
      maxLength: 261,
      pattern: "^(machines|cluster(/[^\\u0000-\\u001f\\u007f-\\u009f]+)?)$",
      description:
        "Where its workers run: `machines` of the servers, any `cluster`, or one, as `cluster/name`; by default as the server is set.",
    }),
  ),
  podClass: orNull(
    Type.String({
      maxLength: 63,
      pattern: visible,
      description:
        "The pod class of its workers in a cluster: the operator sets them up, with their own nodes, priority or account.",
    }),
  ),
  scalerType: orNull(
    choice(
      scalerTypes,
      "What starts workers: QUEUE_DELAY, how long jobs wait; REQUEST_COUNT, how many jobs there are for each worker. Endpoints of both types may use either.",
    ),
  ),
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

/** Body of `PATCH /endpoints/{id}` and `POST /endpoints/{id}/update`: only the fields sent change; null clears. */
export const EndpointUpdate = Type.Object({ templateId: Type.Optional(text("The template.")), ...endpointFields });
export type EndpointUpdate = Static<typeof EndpointUpdate>;

/** The settings that workers are made from: changing one makes a new version (contract: Endpoint versions). */
export const madeOf = [
  "templateId",
  "env",
  "computeType",
  "gpuTypeIds",
  "gpuCount",
  "networkVolumeIds",
  "vcpuCount",
  "cpuFlavorIds",
  "instanceIds",
  "allowedCudaVersions",
  "minCudaVersion",
  "podClass",
] as const;

/** An endpoint as replies show it. */
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
  place: Type.Optional(
    Type.String({ description: "Where its workers run, if it is not left to the server's settings." }),
  ),
  podClass: Type.Optional(Type.String({ description: "The pod class of its workers in a cluster." })),
  scalerType: choice(scalerTypes, "How the number of workers is scaled."),
  scalerValue: Type.Integer(),
  vcpuCount: Type.Optional(Type.Integer()),
  workersMax: Type.Integer(),
  workersMin: Type.Integer(),
});
export type Endpoint = Static<typeof Endpoint>;

/** One scaling decision: its inputs, action and reason, for as long as it stayed the same. */
export const ScalingDecision = Type.Object({
  from: Type.String({ format: "date-time" }),
  until: Type.String({ format: "date-time" }),
  times: Type.Integer({ minimum: 1 }),
  inputs: Type.Record(Type.String(), Type.Unknown()),
  outcome: Type.String(),
  reason: Type.String(),
});
export type ScalingDecision = Static<typeof ScalingDecision>;

const Percentiles = Type.Optional(Type.Object({ p50: Type.Integer(), p90: Type.Integer(), p99: Type.Integer() }));

/** Percentiles of each step of an endpoint's worker starts, in milliseconds. */
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

export type ColdStartsView = Static<typeof ColdStarts>;

/** A version of an endpoint: its content, and how its release went. */
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
export type ReleaseView = Static<typeof ReleaseView>;
