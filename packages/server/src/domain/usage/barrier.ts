import type { Terms } from "../access/user.js";
import type { Nano } from "./price.js";

/** What a user has running, or wants to have, at a time. */
export interface Running {
  /** Workers of endpoints, without pods. */
  readonly workers: number;
  readonly gpus: number;
  /** What all of it costs an hour. */
  readonly cost: Nano;
}

/**
 * Why a user may not run more, as a sentence; undefined if it may. Says what is reached, and who can change it.
 * One GPU more than the two allowed: "Your user may hold 2 GPUs at a time, and holds 2 …".
 */
export function barrier({ quotas = {}, spendLimit }: Terms, running: Running, more: Running): string | undefined {
  const { workers, gpus } = quotas;
  const ask = "stop some, or ask an admin for more";
  if (workers !== undefined && more.workers > 0 && running.workers + more.workers > workers)
    return `Your user may run ${workers} workers at a time, and runs ${running.workers}: ${ask} (quotas.workers).`;
  if (gpus !== undefined && more.gpus > 0 && running.gpus + more.gpus > gpus)
    return `Your user may hold ${gpus} GPUs at a time, and holds ${running.gpus}: ${ask} (quotas.gpus).`;
  if (spendLimit === undefined || more.cost === 0 || running.cost + more.cost <= spendLimit) return undefined;
  const shown = (nano: Nano) => (nano / 1e9).toFixed(4).replace(/\.?0+$/, "");
  const costs = `costs ${shown(running.cost)} an hour now, and one more would cost ${shown(more.cost)}`;
  return `What your user runs ${costs}, beyond its limit of ${shown(spendLimit)}: ${ask} (spendLimit).`;
}

/** Whether a sentence about a waiting worker is one of these. */
export const isBarrier = (why: string): boolean => /\((quotas\.\w+|spendLimit)\)\.$/.test(why);
