import type { TemplateSettings } from "../endpoints/template.js";

/** What a user wants of a pod. One that is deleted is TERMINATED. */
export const podStatuses = ["RUNNING", "EXITED", "TERMINATED"] as const;
export type PodStatus = (typeof podStatuses)[number];
export const clouds = ["SECURE", "COMMUNITY"] as const;

/** What a pod has beyond an endpoint's settings. Times are milliseconds. */
export interface PodSettings {
  /** What its container is made of: a template is copied when the pod is saved. */
  readonly container: TemplateSettings;
  readonly desiredStatus: Exclude<PodStatus, "TERMINATED">;
  /** When the desired status last changed, and how: "Created by user". */
  readonly changedAt: number;
  readonly changedBy: string;
  /** The host that has its volume; known once it has been placed. Only of a pod with a volume of its own. */
  readonly volumeHostNo?: number;
  /** When it is stopped, and when it is deleted, by themselves. */
  readonly stopAt?: number;
  readonly terminateAt?: number;
  /** What its machine must have at least; 0 is anything. Absent if it asks for nothing. */
  readonly least?: {
    readonly vcpuCount: number;
    readonly memoryInGb: number;
    readonly vcpuPerGpu: number;
    readonly memoryInGbPerGpu: number;
  };
  /** It cannot be stopped, reset or deleted. */
  readonly locked: boolean;
  /** What is kept and shown, and changes nothing here. */
  readonly cloudType: (typeof clouds)[number];
  readonly interruptible: boolean;
  readonly globalNetworking: boolean;
  readonly supportPublicIp: boolean;
}
