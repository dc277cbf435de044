import type { Terms } from "../access/user.js";
import type { EndpointType } from "../endpoints/endpoint.js";
import { isSameType } from "../hosts/gpu.js";
import type { Resources } from "../workers/worker.js";
import { hourMs } from "./meter.js";

/** Amounts of money are whole billionths of the currency: so they add up exactly. */
export type Nano = number;
export const nanoPerUnit = 1_000_000_000;

/** Prices an hour. Without any, amounts are 0, and times are still counted. */
export interface Prices {
  /** Of one GPU, by its type. */
  readonly gpus: Readonly<Record<string, Nano>>;
  readonly vcpu: Nano;
  /** Of a GB of memory. */
  readonly memoryGb: Nano;
  /** Of a GB of network volumes. */
  readonly volumeGb: Nano;
}
export const noPrices: Prices = { gpus: {}, vcpu: 0, memoryGb: 0, volumeGb: 0 };

/** What an hour costs, for GPUs and for processors with memory. */
export interface Rate {
  readonly gpu: Nano;
  readonly cpu: Nano;
}

/** The price of a GPU type; undefined if it has none. */
export const gpuPrice = ({ gpus }: Prices, type: string): Nano | undefined =>
  Object.entries(gpus).find(([name]) => isSameType(name, type))?.[1];

/** What an hour of a worker or pod costs that has these resources. */
export function hourlyRate(prices: Prices, resources: Resources | undefined): Rate {
  if (!resources) return { gpu: 0, cpu: 0 };
  const gpu = resources.gpus.reduce((sum, { name }) => sum + (gpuPrice(prices, name) ?? 0), 0);
  const memory = ((resources.memoryMib ?? 0) / 1_024) * prices.memoryGb;
  return { gpu, cpu: Math.round((resources.cpus ?? 0) * prices.vcpu + memory) };
}

/** What a time costs at a price an hour; `share`: what is left of it after a discount, 0 to 1. */
export const costOf = (rate: Nano, ms: number, share = 1): Nano => Math.round((rate * share * ms) / hourMs);

/** What is left of prices after a user's discount, 0 to 1. A pod is no serverless worker, and has none. */
export const shareAfterDiscount = (type: EndpointType, { serverlessDiscount = 0 }: Terms = {}): number =>
  type === "POD" ? 1 : 1 - serverlessDiscount;

/** An amount as callers see it. */
export const shownAmount = (nano: Nano): number => nano / nanoPerUnit;
