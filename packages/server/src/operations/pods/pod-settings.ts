import type { ApiKey } from "../../domain/access/key.js";
import { endpointDefaults } from "../../domain/endpoints/endpoint.js";
import { isPath, type TemplateSettings, templateDefaults } from "../../domain/endpoints/template.js";
import type { Pod } from "../../domain/pods/pod.js";
import { clouds, type PodSettings } from "../../domain/pods/pod-settings.js";
import { invalid } from "../../errors.js";
import { cudaVersions, limits } from "../../limits/index.js";
import { gpuTypes, locations, machineFields, unknownTemplate, volumes } from "../endpoints/endpoint-settings.js";
import {
  checkFields,
  choice,
  type FieldRules,
  flag,
  integer,
  list,
  nameRule,
  text,
  timeIn,
  variables,
} from "../fields.js";
import type { Needs } from "../needs.js";
import { mergeTemplate, type TemplateInput, type templateFields } from "../templates/save-template.js";

type Checking = Parameters<typeof mergeTemplate>[0];
type Settings = Pod["settings"];
type Given<T> = T | null | undefined;

/** What a caller may send of a pod's container: absent keeps, null clears. */
type ContainerInput = Pick<
  TemplateInput,
  | "imageName"
  | "containerDiskInGb"
  | "containerRegistryAuthId"
  | "dockerEntrypoint"
  | "dockerStartCmd"
  | "ports"
  | "volumeInGb"
  | "volumeMountPath"
>;

/** What a caller may send for a pod, over any interface. */
export interface PodInput extends ContainerInput {
  readonly name?: Given<string>;
  readonly templateId?: Given<string>;
  readonly env?: Given<Readonly<Record<string, string>>>;
  readonly computeType?: Given<Settings["computeType"]>;
  readonly gpuTypeIds?: Given<readonly string[]>;
  readonly gpuCount?: Given<number>;
  readonly cpuFlavorIds?: Given<readonly string[]>;
  readonly instanceIds?: Given<readonly string[]>;
  readonly vcpuCount?: Given<number>;
  readonly allowedCudaVersions?: Given<readonly string[]>;
  readonly minCudaVersion?: Given<string>;
  /** What the machine of a GPU pod must have at least, altogether or for each of its GPUs. */
  readonly minVcpuCount?: Given<number>;
  readonly minMemoryInGb?: Given<number>;
  readonly minVCPUPerGPU?: Given<number>;
  readonly minRAMPerGPU?: Given<number>;
  readonly dataCenterIds?: Given<readonly string[]>;
  readonly countryCodes?: Given<readonly string[]>;
  readonly networkVolumeId?: Given<string>;
  readonly cloudType?: Given<PodSettings["cloudType"]>;
  readonly interruptible?: Given<boolean>;
  readonly locked?: Given<boolean>;
  readonly globalNetworking?: Given<boolean>;
  readonly supportPublicIp?: Given<boolean>;
  /** When it is stopped, and deleted, by itself: RFC 3339. */
  readonly stopAfter?: Given<string>;
  readonly terminateAfter?: Given<string>;
}

/** The fields of a pod that a caller may send over any interface, beside those of its container. */
const podFields = {
  ...machineFields,
  minCudaVersion: choice(cudaVersions),
  minVcpuCount: integer(0, limits.leastSizeMax),
  minMemoryInGb: integer(0, limits.leastSizeMax),
  minVCPUPerGPU: integer(0, limits.leastSizeMax),
  minRAMPerGPU: integer(0, limits.leastSizeMax),
  name: nameRule,
  templateId: text(10_000),
  env: variables,
  countryCodes: list(text(1_000, "none")),
  cloudType: choice(clouds),
  interruptible: flag,
  locked: flag,
  globalNetworking: flag,
  supportPublicIp: flag,
  stopAfter: text(100),
  terminateAfter: text(100),
} as const satisfies FieldRules;

const containerFields = [
  "imageName",
  "containerDiskInGb",
  "containerRegistryAuthId",
  "dockerEntrypoint",
  "dockerStartCmd",
  "ports",
  "volumeInGb",
  "volumeMountPath",
] as const satisfies readonly (keyof ContainerInput & keyof typeof templateFields)[];

const nameDefault = "my pod";

/** The settings of a new pod, checked. */
export function newPodSettings(needs: Checking & Needs<"clock">, caller: ApiKey, input: PodInput): Settings {
  checkFields(podFields, input as Readonly<Record<string, unknown>>);
  const isCpu = input.computeType === "CPU";
  const base = input.templateId ? templateCopy(needs, caller, input.templateId) : undefined;
  const name = input.name || base?.container.name || nameDefault;
  const plain = base?.container ?? { ...templateDefaults, name, imageName: "", ...(isCpu ? { volumeInGb: 0 } : {}) };
  const container = containerOf(needs, caller, { ...plain, name }, input);
  const networkVolumeIds = input.networkVolumeId ? volumes(needs, caller, input, []) : [];
  const now = needs.clock.now();
  const settings: Settings = {
    ...endpointDefaults,
    name,
    templateId: input.templateId ?? "",
    type: "POD",
    computeType: input.computeType ?? "GPU",
    env: { ...base?.env, ...input.env },
    gpuCount: input.gpuCount ?? 1,
    gpuTypeIds: isCpu ? [] : gpuTypes(needs, { gpuTypeIds: input.gpuTypeIds }, [], false),
    instanceIds: input.instanceIds ?? [],
    ...(input.cpuFlavorIds ? { cpuFlavorIds: input.cpuFlavorIds } : {}),
    ...(isCpu ? { vcpuCount: input.vcpuCount ?? 2 } : {}),
    ...(input.allowedCudaVersions ? { allowedCudaVersions: input.allowedCudaVersions } : {}),
    ...(input.minCudaVersion ? { minCudaVersion: input.minCudaVersion } : {}),
    dataCenterIds: input.dataCenterIds ?? [],
    locations: locations((input.countryCodes ?? []).join(","), "countryCodes"),
    networkVolumeIds,
    workersMin: 1,
    workersMax: 1,
    pod: {
      container,
      desiredStatus: "RUNNING",
      changedAt: now,
      changedBy: "Created by user",
      locked: input.locked ?? false,
      cloudType: input.cloudType ?? "SECURE",
      interruptible: input.interruptible ?? false,
      globalNetworking: input.globalNetworking ?? false,
      supportPublicIp: input.supportPublicIp ?? false,
      ...(isCpu ? {} : leastOf(input)),
      ...endsOf(input, now),
    },
  };
  return settings;
}

/** The minimums of its machine, if there are any. */
function leastOf(input: PodInput): Pick<PodSettings, "least"> {
  const least = {
    vcpuCount: input.minVcpuCount ?? 0,
    memoryInGb: input.minMemoryInGb ?? 0,
    vcpuPerGpu: input.minVCPUPerGPU ?? 0,
    memoryInGbPerGpu: input.minRAMPerGPU ?? 0,
  };
  return Object.values(least).some((value) => value > 0) ? { least } : {};
}

/** The settings that result from changing an existing pod, checked: only what was sent changes. */
export function changedPodSettings(
  needs: Checking & Needs<"clock">,
  caller: ApiKey,
  { settings }: Pod,
  input: PodInput,
): Settings {
  checkFields(podFields, input as Readonly<Record<string, unknown>>, settings as unknown as Record<string, unknown>);
  const { pod } = settings;
  const name = input.name || settings.name;
  const container = containerOf(needs, caller, { ...pod.container, name }, input);
  if (container.volumeInGb < pod.container.volumeInGb && pod.volumeHostNo !== undefined)
    throw invalid(`A pod's volume can only grow: its size is ${pod.container.volumeInGb} GB (volumeInGb).`);
  const ends = endsOf(input, needs.clock.now());
  return {
    ...settings,
    name,
    env: input.env === undefined ? settings.env : (input.env ?? {}),
    gpuCount: input.gpuCount ?? settings.gpuCount,
    pod: {
      ...without(pod, input),
      container,
      locked: input.locked ?? pod.locked,
      globalNetworking: input.globalNetworking ?? pod.globalNetworking,
      ...ends,
    },
  };
}

/** A pod's settings without the ends that null takes away. */
function without(pod: PodSettings, { stopAfter, terminateAfter }: PodInput): PodSettings {
  const { stopAt, terminateAt, ...rest } = pod;
  return {
    ...rest,
    ...(stopAt === undefined || stopAfter === null ? {} : { stopAt }),
    ...(terminateAt === undefined || terminateAfter === null ? {} : { terminateAt }),
  };
}

/** A copy of what a template says. The values of another user's environment are not shown to anyone, so not copied. */
function templateCopy({ registry }: Checking, caller: ApiKey, id: string) {
  const template = registry.template(id);
  const isOwn = template?.ownerNo === caller.ownerNo;
  if (!template || !(isOwn || template.settings.isPublic)) throw unknownTemplate(id);
  const { env, isInline: _, readme: __, ...settings } = template.settings;
  const container = { ...settings, readme: "", env: {}, isPublic: false };
  return { env: isOwn ? env : {}, container };
}

/** What a pod's container is made of, checked as a template is. */
function containerOf(needs: Checking, caller: ApiKey, base: TemplateSettings, input: PodInput): TemplateSettings {
  const sent = containerFields.flatMap((field) => (input[field] === undefined ? [] : [[field, input[field]] as const]));
  const given = Object.fromEntries(sent) as TemplateInput;
  const image = given.imageName ?? base.imageName;
  if (!image) throw invalid("A pod needs 'imageName', or a 'templateId' that has one.");
  const container = mergeTemplate(needs, caller, base, { ...given, imageName: image });
  const isBare = container.dockerEntrypoint.length + container.dockerStartCmd.length === 0;
  if (isPath(container.imageName) && isBare)
    throw invalid("A pod made from a directory needs 'dockerStartCmd': the command that it runs.");
  return container;
}

function endsOf({ stopAfter, terminateAfter }: PodInput, now: number): Pick<PodSettings, "stopAt" | "terminateAt"> {
  const at = (field: string, value: Given<string>) => {
    if (!value) return undefined;
    const time = timeIn(field, value);
    if (time <= now || time > now + limits.podEndMsMax)
      throw invalid(`'${field}' must be a time in the future, a year from now at most.`);
    return time;
  };
  const stopAt = at("stopAfter", stopAfter);
  const terminateAt = at("terminateAfter", terminateAfter);
  return { ...(stopAt === undefined ? {} : { stopAt }), ...(terminateAt === undefined ? {} : { terminateAt }) };
}
