import type { User } from "../../domain/access/user.js";
import type { Endpoint } from "../../domain/endpoints/endpoint.js";
import { isPod, ownVolumeGb } from "../../domain/pods/pod.js";
import { barrier, type Running } from "../../domain/usage/barrier.js";
import { hourlyRate, shareAfterDiscount } from "../../domain/usage/price.js";
import { isThrottled, type Resources } from "../../domain/workers/worker.js";
import { Refusal } from "../../errors.js";
import type { Needs } from "../needs.js";

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
  const of = ({ settings }: Endpoint, held: Resources | undefined): Running => {
    const { gpu, cpu } = hourlyRate(prices, held);
    return {
      workers: settings.type === "POD" ? 0 : 1,
      gpus: held?.gpus.length ?? 0,
      cost: Math.round((gpu + cpu) * shareAfterDiscount(settings.type, terms)),
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
  volumesGb: "GB of volumes",
} as const;

/** The size of a user's volumes together, network volumes and pods' own, in GB. */
export function keptGb({ registry }: Needs<"registry">, owner: number): number {
  let sum = 0;
  for (const { ownerNo, size } of registry.volumes()) if (ownerNo === owner) sum += size;
  for (const each of registry.endpoints())
    if (each.ownerNo === owner && each.deletedAt === undefined && isPod(each)) sum += ownVolumeGb(each.settings);
  return sum;
}

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

/** How much of a quota a user has, and how much more it would get. */
export interface Gain {
  readonly has: number;
  readonly more: number;
}

/** Refuses to give a user more than it may have, and says the numbers of every quota that is too small. */
export function mayBeGiven({ id, terms }: User, gains: Readonly<Partial<Record<keyof typeof nouns, Gain>>>): void {
  const exceeded = Object.entries(gains).flatMap(([name, { has, more }]) => {
    const most = terms.quotas?.[name as keyof typeof nouns];
    return most === undefined || more <= 0 || has + more <= most ? [] : [`quotas.${name} ${has + more} > ${most}`];
  });
  if (exceeded.length === 0) return;
  throw new Refusal(
    "QUOTA_REACHED",
    `The user '${id}' would have more than it may (${exceeded.join(", ")}): raise these quotas first, or transfer to another user.`,
  );
}

/** Stores a job, unless its user's queues together are full. */
export async function withinQueue<T>(
  { registry, tallies, queueRoom }: Needs<"registry" | "tallies" | "queueRoom">,
  { ownerNo }: Pick<Endpoint, "ownerNo">,
  store: () => Promise<T>,
): Promise<T> {
  const user = registry.user(ownerNo);
  const most = user?.terms.quotas?.queuedJobs;
  if (user === undefined || most === undefined) return store();
  const isTheirs = (endpoint: Endpoint) => endpoint.ownerNo === ownerNo && endpoint.deletedAt === undefined;
  const endpointNos = () => [...registry.endpoints()].filter(isTheirs).map(({ no }) => no);
  const leave = await queueRoom.enter(user, most, () => tallies.waiting(endpointNos()));
  if (!leave) {
    throw new Refusal(
      "QUEUE_FULL",
      `This user may have ${most} jobs waiting: send this one again when some have begun, or ask an admin for more (quotas.queuedJobs).`,
      { retryAfterSeconds: 5 },
    );
  }
  try {
    return await store();
  } finally {
    leave();
  }
}
