import type { Quotas, Terms } from "../../domain/access/user.js";
import { quotaNames } from "../../domain/access/user.js";
import type { Endpoint } from "../../domain/endpoints/endpoint.js";
import { barrier, type Running } from "../../domain/usage/barrier.js";
import { hourlyRate, nanoPerUnit, shownAmount } from "../../domain/usage/price.js";
import { isThrottled, type Resources } from "../../domain/workers/worker.js";
import { invalid, Refusal } from "../../errors.js";
import { limits } from "../../limits/index.js";
import type { Needs } from "../needs.js";

/** What an admin sends of a user's terms: absent keeps, null clears. Money is in units of the currency. */
export interface TermsInput {
  readonly serverlessDiscount?: number | null;
  readonly spendLimit?: number | null;
  readonly weight?: number | null;
  readonly quotas?: { readonly [Name in keyof Quotas]?: number | null } | null;
}

/** The terms that result from applying `input` to others. */
export function mergeTerms(base: Terms, { serverlessDiscount, spendLimit, quotas, weight }: TermsInput): Terms {
  const { quotas: before = {}, ...money } = base;
  const merged: Record<string, number | null | undefined> = quotas === null ? {} : { ...before, ...quotas };
  const kept = quotaNames.flatMap((name) => (typeof merged[name] === "number" ? [[name, merged[name]] as const] : []));
  const draft = {
    serverlessDiscount: serverlessDiscount === undefined ? money.serverlessDiscount : serverlessDiscount,
    spendLimit:
      spendLimit === undefined ? money.spendLimit : spendLimit === null ? null : Math.round(spendLimit * nanoPerUnit),
    weight: weight === undefined ? money.weight : weight,
    quotas: kept.length > 0 ? Object.fromEntries(kept) : null,
  };
  return Object.fromEntries(Object.entries(draft).filter(([, value]) => value !== undefined && value !== null));
}

/** A user's terms as callers see them. */
export const showTerms = ({ serverlessDiscount, spendLimit, quotas, weight }: Terms) => ({
  ...(weight === undefined ? {} : { weight }),
  ...(serverlessDiscount === undefined ? {} : { serverlessDiscount }),
  ...(spendLimit === undefined ? {} : { spendLimit: shownAmount(spendLimit) }),
  ...(quotas === undefined ? {} : { quotas }),
});

/** Why a worker of this endpoint with these resources may not start now, because of its user's terms. */
export function barredBy(
  { registry }: Needs<"registry">,
  endpoint: Endpoint,
  resources: Resources,
): string | undefined {
  const terms = registry.user(endpoint.ownerNo)?.terms ?? {};
  if (terms.spendLimit === undefined && terms.quotas?.workers === undefined && terms.quotas?.gpus === undefined)
    return undefined;
  const prices = registry.prices.now;
  const share = 1 - (terms.serverlessDiscount ?? 0);
  const of = ({ settings }: Endpoint, held: Resources | undefined): Running => {
    const { gpu, cpu } = hourlyRate(prices, held);
    const isServerless = settings.type !== "POD";
    return {
      workers: isServerless ? 1 : 0,
      gpus: held?.gpus.length ?? 0,
      cost: Math.round((gpu + cpu) * (isServerless ? share : 1)),
    };
  };
  const running = { workers: 0, gpus: 0, cost: 0 };
  for (const { row } of registry.liveWorkers()) {
    const other = isThrottled(row) || row.wanted === "paused" ? undefined : registry.endpointByNo(row.endpointNo);
    if (other?.ownerNo !== endpoint.ownerNo) continue;
    const { workers, gpus, cost } = of(other, row.resources);
    running.workers += workers;
    running.gpus += gpus;
    running.cost += cost;
  }
  for (const { ownerNo, size } of registry.volumes())
    if (ownerNo === endpoint.ownerNo) running.cost += size * prices.volumeGb;
  return barrier(terms, running, of(endpoint, resources));
}

const nouns = {
  pods: "pods",
  endpoints: "endpoints",
  templates: "templates",
  keys: "API keys",
  volumesGb: "GB of network volumes",
} as const;

/** Refuses what would be more than a user may have. */
export function withinQuota(
  { registry }: Needs<"registry">,
  ownerNo: number,
  quota: keyof typeof nouns,
  { has, more = 1 }: { has: number; more?: number },
): void {
  const most = registry.user(ownerNo)?.terms.quotas?.[quota];
  if (most === undefined || more <= 0 || has + more <= most) return;
  throw new Refusal(
    "QUOTA_REACHED",
    `This user may have ${most} ${nouns[quota]}, and has ${has}: delete some, or ask an admin for more (quotas.${quota}).`,
  );
}

/** Refuses a job of a user whose queues together are full. */
export async function withinQueue(
  { registry, tallies }: Needs<"registry" | "tallies">,
  { ownerNo }: Pick<Endpoint, "ownerNo">,
): Promise<void> {
  const most = registry.user(ownerNo)?.terms.quotas?.queuedJobs;
  if (most === undefined) return;
  let waiting = 0;
  for (const { no, ownerNo: owner, deletedAt } of registry.endpoints()) {
    if (owner !== ownerNo || deletedAt !== undefined) continue;
    waiting += (await tallies.tally(no)).waiting;
    if (waiting < most) continue;
    throw new Refusal(
      "QUEUE_FULL",
      `This user may have ${most} jobs waiting: send this one again when some have begun, or ask an admin for more (quotas.queuedJobs).`,
      { retryAfterSeconds: 5 },
    );
  }
}

/** Refuses terms that make no sense. */
export function checkTerms({ serverlessDiscount, spendLimit, quotas, weight }: TermsInput): void {
  if (weight !== undefined && weight !== null && !(weight >= limits.weightMin && weight <= limits.weightMax))
    throw invalid(`'weight' must be a number from ${limits.weightMin} to ${limits.weightMax}.`);
  if (
    serverlessDiscount !== undefined &&
    serverlessDiscount !== null &&
    !(serverlessDiscount >= 0 && serverlessDiscount <= 1)
  )
    throw invalid("'serverlessDiscount' must be the share that is taken off, from 0 to 1.");
  if (spendLimit !== undefined && spendLimit !== null && !(spendLimit >= 0 && spendLimit <= limits.priceMax))
    throw invalid(`'spendLimit' must be an amount an hour from 0 to ${limits.priceMax}.`);
  for (const [name, most] of Object.entries(quotas ?? {}))
    if (most !== null && !(Number.isInteger(most) && most >= 0 && most <= limits.quotaMax))
      throw invalid(`'quotas.${name.slice(0, 80)}' must be a whole number from 0 to ${limits.quotaMax}.`);
}
