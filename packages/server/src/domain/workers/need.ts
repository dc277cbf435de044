import type { EndpointSettings } from "../endpoints/endpoint.js";
import type { Source } from "../endpoints/template.js";
import { gbPerCpu, readInstance } from "../hosts/cpu.js";
import { neededCuda } from "../hosts/cuda.js";
import type { LeastSize } from "../hosts/host.js";

/** What a worker needs for its exclusive use. */
export interface Need {
  /** Undefined if there is only one host: the failed start on that host says why it cannot run the worker. */
  readonly source: Source | undefined;
  readonly gpuCount: number;
  /** In order of preference; empty allows any. */
  readonly gpuTypes: readonly string[];
  /** The CUDA version that its GPUs' driver must support. */
  readonly cuda?: string | undefined;
  /** What its machine must have; the worker holds none of it. */
  readonly least?: LeastSize | undefined;
  /** CPU and memory, in order of preference; at least one. */
  readonly shares: readonly Share[];
}

/** A share of a machine. */
export interface Share {
  /** Virtual processors; undefined if they are not counted. */
  readonly cpus: number | undefined;
  readonly memoryMib: number | undefined;
}

/** What a worker with these settings needs. */
export function needOf(settings: EndpointSettings, source?: Source): Need {
  if (settings.computeType === "CPU") return { source, gpuCount: 0, gpuTypes: [], shares: sharesOf(settings) };
  const shares = [{ cpus: undefined, memoryMib: undefined }];
  const { gpuCount, gpuTypeIds: gpuTypes } = settings;
  return { source, gpuCount, gpuTypes, cuda: neededCuda(settings), least: leastOf(settings), shares };
}

/** The machine that a pod asks for: the minimums for each GPU count for all of its GPUs. */
function leastOf({ pod, gpuCount }: EndpointSettings): LeastSize | undefined {
  if (pod?.least === undefined) return undefined;
  const { vcpuCount, memoryInGb, vcpuPerGpu, memoryInGbPerGpu } = pod.least;
  return {
    cpus: Math.max(vcpuCount, vcpuPerGpu * gpuCount),
    memoryGb: Math.max(memoryInGb, memoryInGbPerGpu * gpuCount),
  };
}

/** An instance such as cpu3g-2-8 has 2 processors and 8 GB; a flavour such as cpu3g gives each of `vcpuCount` 4 GB. */
function sharesOf({ instanceIds, vcpuCount, cpuFlavorIds = [] }: EndpointSettings): Share[] {
  const instances = instanceIds.flatMap((id) => {
    const instance = readInstance(id);
    return instance ? [{ cpus: instance.cpus, memoryMib: instance.memoryGb * 1_024 }] : [];
  });
  if (instances.length > 0) return instances;
  const flavors = cpuFlavorIds.flatMap((id) => gbPerCpu(id) ?? []);
  if (vcpuCount === undefined || flavors.length === 0) return [{ cpus: vcpuCount, memoryMib: undefined }];
  return flavors.map((perCpu) => ({ cpus: vcpuCount, memoryMib: vcpuCount * perCpu * 1_024 }));
}

/** A size in words. */
export const shareText = ({ cpus, memoryMib }: Share): string =>
  [cpus === undefined ? "" : `${cpus} vCPU`, memoryMib === undefined ? "" : `${memoryMib / 1_024} GB of memory`]
    .filter(Boolean)
    .join(" and ");
