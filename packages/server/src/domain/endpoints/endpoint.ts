import { limits } from "../../limits/index.js";
import type { WantedPlace } from "../hosts/place.js";
import type { PodSettings } from "../pods/pod-settings.js";

export type ScalerType = "QUEUE_DELAY" | "REQUEST_COUNT";
/** What takes an endpoint's requests. A pod is kept as an endpoint of one worker that takes none (decision 0034). */
export type EndpointType = "QB" | "LB" | "POD";
export type ComputeType = "GPU" | "CPU";
export type FlashBootType = "OFF" | "FLASHBOOT" | "PRIORITY_FLASHBOOT";

/** What a user can set on an endpoint, in the contract's names. */
export interface EndpointSettings {
  readonly name: string;
  readonly templateId: string;
  readonly type: EndpointType;
  readonly computeType: ComputeType;
  readonly allowedCudaVersions?: readonly string[];
  readonly cpuFlavorIds?: readonly string[];
  readonly dataCenterIds: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly executionTimeoutMs: number;
  readonly flashBootType: FlashBootType;
  readonly gpuCount: number;
  readonly gpuTypeIds: readonly string[];
  /** Seconds. */
  readonly idleTimeout: number;
  readonly instanceIds: readonly string[];
  /** Comma-separated country codes; empty is any. */
  readonly locations: string;
  readonly minCudaVersion?: string;
  readonly networkVolumeIds: readonly string[];
  /** Where its workers run; absent: as the server's settings say. */
  readonly place?: WantedPlace;
  /** The class of its pods in a cluster. */
  readonly podClass?: string;
  readonly scalerType: ScalerType;
  readonly scalerValue: number;
  readonly vcpuCount?: number;
  readonly workersMax: number;
  readonly workersMin: number;
  /** Of a pod only. */
  readonly pod?: PodSettings;
}

export interface Endpoint {
  readonly no: number;
  readonly id: string;
  readonly ownerNo: number;
  readonly settings: EndpointSettings;
  readonly version: number;
  readonly createdAt: number;
  readonly deletedAt: number | undefined;
  /** The newest version that a worker has started well with; 0 if there is none. */
  readonly provenVersion: number;
  /** The last version whose workers failed at start. While it is current, the last proven version keeps serving. */
  readonly heldVersion: number | undefined;
  /** How many starts in a row have failed, and when the last one did. */
  readonly failedStarts: number;
  readonly failedAt: number | undefined;
  /** Why the last start failed, with the last lines of its log. */
  readonly verdict: string | undefined;
}

/**
 * The version that workers are made from now: the current one, or the last proven one while the current one is held.
 */
export const servingVersion = ({
  version,
  provenVersion,
  heldVersion,
}: Pick<Endpoint, "version" | "provenVersion" | "heldVersion">): number =>
  heldVersion === version && provenVersion > 0 ? provenVersion : version;

/** What the audit log shows of an endpoint: its settings, and the pause after failed starts, which every save ends. */
export const recordedEndpoint = ({
  settings,
  failedStarts = 0,
  heldVersion,
}: Pick<Endpoint, "settings"> & Partial<Pick<Endpoint, "failedStarts" | "heldVersion">>) => ({
  ...settings,
  failedStarts,
  heldVersion,
});

/** The settings of an endpoint unless given (contract and decisions.md: Management). */
export const endpointDefaults = {
  type: "QB",
  computeType: "GPU",
  dataCenterIds: [],
  env: {},
  executionTimeoutMs: limits.executionTimeoutMsDefault,
  flashBootType: "OFF",
  gpuCount: 1,
  gpuTypeIds: [],
  idleTimeout: 5,
  instanceIds: [],
  locations: "",
  networkVolumeIds: [],
  scalerType: "QUEUE_DELAY",
  scalerValue: 4,
  workersMax: 3,
  workersMin: 0,
} as const satisfies Partial<EndpointSettings>;

/** The settings that workers are made from: changing one makes a new version. */
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
] as const satisfies readonly (keyof EndpointSettings)[];

/** Whether a save changes what workers are made from, so that existing workers must be replaced. */
export const needsRelease = (before: EndpointSettings, after: EndpointSettings): boolean =>
  madeOf.some((field) => JSON.stringify(before[field]) !== JSON.stringify(after[field]));

/** The settings kept for a deleted endpoint, which stays in memory for a day: no lists and no environment. */
export const settingsOfDeleted = (settings: EndpointSettings): EndpointSettings => ({
  ...endpointDefaults,
  name: settings.name,
  templateId: settings.templateId,
  type: settings.type,
  computeType: settings.computeType,
  executionTimeoutMs: settings.executionTimeoutMs,
  workersMin: 0,
  workersMax: 0,
});
