import Type, { type Static } from "typebox";
import { computeTypes } from "./endpoints.js";
import { choice, Env, ignored, list, orNull, text, time, visible, visibleLines } from "./fields.js";
import { machineFields } from "./machines.js";
import { portPattern, Template } from "./templates.js";
import { Volume } from "./volumes.js";

export const podStatuses = ["RUNNING", "EXITED", "TERMINATED"] as const;
export const podStates = ["PROVISIONING", "STARTING", "RUNNING", "EXITED", "ERROR"] as const;
export const cloudTypes = ["SECURE", "COMMUNITY"] as const;
const priorities = ["availability", "custom"] as const;

/** What can be changed of a pod after it was created. */
const podFields = {
  name: orNull(Type.String({ maxLength: 191, pattern: visible, description: "A name; it need not be unique." })),
  imageName: orNull(Type.String({ maxLength: 4_096, description: "A container image, or a path to a directory." })),
  env: orNull(Env),
  ports: orNull(
    Type.Array(Type.String({ pattern: portPattern, title: "number/http or number/tcp, as in 8888/http" }), {
      description: "The ports that it listens on.",
      maxItems: 100,
    }),
  ),
  dockerEntrypoint: orNull(list("Overrides the image's ENTRYPOINT; [] keeps it.", { pattern: visibleLines })),
  dockerStartCmd: orNull(list("Overrides the image's CMD; [] keeps it.", { pattern: visibleLines })),
  containerDiskInGb: orNull(
    Type.Integer({ minimum: 0, maximum: 100_000, description: "Container disk in GB, emptied at each start." }),
  ),
  containerRegistryAuthId: orNull(text("Registry credentials for a private image.")),
  volumeInGb: orNull(
    Type.Integer({
      minimum: 0,
      maximum: 100_000,
      description: "Size of the pod's own volume in GB; it can only grow.",
    }),
  ),
  volumeMountPath: orNull(text("Where its volume is mounted: an absolute path, not below /proc, /sys or /dev.")),
  locked: orNull(Type.Boolean({ description: "Whether it cannot be stopped, reset or deleted." })),
  globalNetworking: orNull(Type.Boolean({ description: "Kept and shown; it changes nothing here." })),
  stopAfter: orNull(text("When it is stopped by itself, an RFC 3339 time.", { maxLength: 100 })),
  terminateAfter: orNull(text("When it is deleted by itself, an RFC 3339 time.", { maxLength: 100 })),
};
const untold = ignored(Type.Number({ minimum: 0, description: "Ignored: hosts do not tell it." }));
const least = (what: string) =>
  orNull(
    Type.Integer({
      minimum: 0,
      maximum: 1_000_000,
      description: `${what} that its machine must have for each GPU of a GPU pod; it may use all that the machine has.`,
    }),
  );

/** Body of `POST /pods`. */
export const PodCreate = Type.Object({
  ...podFields,
  templateId: orNull(text("A template whose settings are copied; fields that are sent replace its own.")),
  computeType: orNull(choice(computeTypes, "GPU or CPU.")),
  gpuTypeIds: orNull(list("GPU type names in order of preference; empty means any.")),
  gpuTypePriority: orNull(choice(priorities, "The order of gpuTypeIds always counts.")),
  gpuCount: orNull(Type.Integer({ minimum: 1, maximum: 64, description: "Number of GPUs." })),
  ...machineFields,
  cpuFlavorPriority: orNull(choice(priorities, "The order of cpuFlavorIds always counts.")),
  vcpuCount: orNull(Type.Integer({ minimum: 1, maximum: 1_024, description: "vCPUs of a CPU pod; 2 by default." })),
  dataCenterPriority: orNull(choice(priorities, "The order of dataCenterIds does not count.")),
  countryCodes: orNull(list("Acceptable countries; empty means any.", { pattern: visible })),
  networkVolumeId: orNull(text("The network volume to mount instead of a volume of its own.")),
  cloudType: orNull(choice(cloudTypes, "Kept and shown; it changes nothing here.")),
  interruptible: orNull(Type.Boolean({ description: "Kept and shown; it changes nothing here." })),
  supportPublicIp: orNull(Type.Boolean({ description: "Kept and shown; it changes nothing here." })),
  minRAMPerGPU: least("GB of memory"),
  minVCPUPerGPU: least("vCPUs"),
  minDiskBandwidthMBps: untold,
  minDownloadMbps: untold,
  minUploadMbps: untold,
});
export type PodCreate = Static<typeof PodCreate>;

/** Body of `PATCH /pods/{id}` and `POST /pods/{id}/update`: only the fields sent change; null clears. */
export const PodUpdate = Type.Object(podFields);
export type PodUpdate = Static<typeof PodUpdate>;

const amount = (description: string) => Type.Number({ minimum: 0, description });
const count = (description: string) => Type.Integer({ minimum: 0, description });

/** A pod as replies show it. */
export const Pod = Type.Object({
  id: Type.String(),
  name: Type.String(),
  desiredStatus: choice(podStatuses, "What its user wants of it."),
  status: choice(podStates, "What it does now. ERROR: its container keeps ending, and waits for its next start."),
  statusDetail: Type.Optional(Type.String({ description: "Why it does not run." })),
  actions: Type.Array(Type.String(), { description: "What can be done with it now." }),
  lastStatusChange: Type.String({ description: "How and when its desired status last changed." }),
  createdAt: time(),
  lastStartedAt: Type.Optional(time()),
  uptimeSeconds: count("How long its container has been running."),
  stopAfter: Type.Optional(time()),
  terminateAfter: Type.Optional(time()),
  consumerUserId: Type.String({ description: "Its owner." }),
  image: Type.String(),
  env: Type.Record(Type.String(), Type.String()),
  ports: Type.Array(Type.String()),
  dockerEntrypoint: Type.Array(Type.String()),
  dockerStartCmd: Type.Array(Type.String()),
  containerDiskInGb: count("GB."),
  containerRegistryAuthId: Type.Optional(Type.String()),
  volumeInGb: count("GB; 0 if it has no volume of its own."),
  volumeMountPath: Type.String(),
  volumeEncrypted: Type.Boolean(),
  networkVolumeId: Type.Optional(Type.String()),
  networkVolume: Type.Optional(Volume),
  templateId: Type.Optional(Type.String()),
  template: Type.Optional(Template),
  locked: Type.Boolean(),
  interruptible: Type.Boolean(),
  cloudType: choice(cloudTypes, "SECURE or COMMUNITY."),
  globalNetworking: Type.Boolean(),
  supportPublicIp: Type.Boolean(),
  computeType: choice(computeTypes, "GPU or CPU."),
  gpuTypeIds: Type.Array(Type.String()),
  gpuCount: count("Of a CPU pod 0."),
  gpu: Type.Optional(Type.Object({ id: Type.String(), count: count("GPUs."), displayName: Type.String() })),
  cpuFlavorId: Type.Optional(Type.String()),
  vcpuCount: count("vCPUs that it may use; 0 until it has a place."),
  memoryInGb: count("GB of memory that it may use; 0 until it has a place."),
  dataCenterIds: Type.Array(Type.String()),
  costPerHr: amount("What an hour of it costs."),
  adjustedCostPerHr: amount("The same: discounts are for workers of endpoints."),
  machineId: Type.Optional(Type.String()),
  machine: Type.Optional(
    Type.Object({
      gpuTypeId: Type.Optional(Type.String()),
      gpuDisplayName: Type.Optional(Type.String()),
      cpuCount: count("Of the whole machine."),
      dataCenterId: Type.Optional(Type.String()),
      location: Type.Optional(Type.String()),
    }),
  ),
  portMappings: Type.Union([Type.Record(Type.String(), Type.Integer()), Type.Null()], {
    description: "By port of the container, the port on its machine; null unless it runs in a network of its own.",
  }),
  publicIp: Type.Union([Type.String(), Type.Null()]),
  privateIp: Type.Optional(Type.String()),
  savingsPlans: Type.Optional(Type.Array(Type.Object({}))),
  slsVersion: count("How often what it is made of has changed, from 1."),
});
export type Pod = Static<typeof Pod>;
