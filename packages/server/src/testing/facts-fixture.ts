import type { Gpu } from "../domain/gpu.js";
import type { HostFacts } from "../domain/host.js";
import { type TemplateSettings, templateDefaults } from "../domain/template.js";
import type { Worker } from "../domain/worker.js";
import type { NewRelease } from "../store.js";

/** A machine without GPUs, anywhere. */
export const plainHost: HostFacts = { location: undefined, gpus: [], gpusEnforced: false, cpus: 8, memoryMib: 16_384 };

/** A GPU of the kind that tests have the most of. */
export const l4 = (index: number): Gpu => ({
  id: `GPU-${index}`,
  index,
  name: "NVIDIA L4",
  memoryMib: 23_034,
  driver: "570",
});

export const plainTemplate: TemplateSettings = { ...templateDefaults, name: "template", imageName: "/handler" };

/** A version that differs in nothing. */
export const plainRelease: NewRelease = { template: plainTemplate, madeAt: 1 };

/** A worker whose row was just made. */
export const newWorker: Worker = {
  no: 1,
  id: "worker00000001",
  endpointNo: 1,
  version: 1,
  hostNo: 1,
  wanted: "running",
  secretHash: undefined,
  handle: undefined,
  workerUrl: undefined,
  resources: undefined,
  address: undefined,
  createdAt: 1,
  throttledAt: undefined,
  placedAt: undefined,
  imageAt: undefined,
  madeAt: undefined,
  startedAt: undefined,
  readyAt: undefined,
  outputAt: undefined,
  pausedAt: undefined,
  resumedAt: undefined,
  closedAt: undefined,
  stopAt: undefined,
  askedAt: undefined,
  killAt: undefined,
  endedAt: undefined,
  lastDoneAt: undefined,
  hasPinged: false,
  trouble: undefined,
  why: undefined,
  seenAt: 0,
  busyAt: 0,
  polledAt: 0,
  slots: 1,
  exit: undefined,
};
