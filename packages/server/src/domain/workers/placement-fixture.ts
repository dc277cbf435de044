import { plainHost } from "../../testing/facts-fixture.js";
import type { Gpu } from "../hosts/gpu.js";
import type { HostView } from "../hosts/host.js";
import type { Need } from "./need.js";
import type { Holding, place, Where } from "./placement.js";

export const anywhere: Where = { locations: "", dataCenterIds: [], places: ["machines", "cluster"] };
export const gpu = (id: string, name = "NVIDIA L4"): Gpu => ({ id, index: 0, name, memoryMib: 23_034, driver: "570" });
export const host = (no: number, gpus: readonly Gpu[], more: Partial<HostView> = {}): HostView => ({
  ...plainHost,
  gpusEnforced: true,
  no,
  gpus,
  workers: 0,
  ...more,
});
export const holds = (workerNo: number, gpus: readonly Gpu[], more: Partial<Holding> = {}): Holding => ({
  workerNo,
  hostNo: 1,
  resources: { gpus, cpus: undefined, memoryMib: undefined },
  holder: `worker ${workerNo}`,
  isLeaving: false,
  pausedRank: undefined,
  ...more,
});
export const need = (more: Partial<Need> = {}): Need => ({
  source: undefined,
  gpuCount: 1,
  gpuTypes: [],
  shares: [{ cpus: undefined, memoryMib: undefined }],
  ...more,
});
export const given = (found: ReturnType<typeof place>) =>
  "hostNo" in found ? [found.hostNo, ...found.resources.gpus.map(({ id }) => id)] : found;
