import { limits } from "../../limits/index.js";
import { gib } from "../../limits/units.js";
import type { Needs } from "../../operations/needs.js";
import type { Attempt, Delivery, DueDelivery, Held, HeldSum, Target } from "../../store/index.js";

type Holding = Needs<"deliveries" | "receivers" | "registry" | "bell" | "emit" | "ids" | "news">;

/** The scheme, host and port that a delivery goes to; empty if its URL is none. */
const originOf = ({ url }: Delivery): string => (URL.canParse(url) ? new URL(url).origin : "");

const ownerOf = ({ registry }: Holding, { endpointNo }: Delivery): number | undefined =>
  registry.endpointByNo(endpointNo)?.ownerNo;

/**
 * Holds back deliveries to paused receivers, and returns their numbers. Beyond what an owner's receivers may hold, they
 * end: the attempt says why.
 */
export async function heldBack(needs: Holding, due: readonly DueDelivery[], now: number): Promise<ReadonlySet<number>> {
  const { deliveries, receivers, bell, news } = needs;
  const aimed = due.flatMap((delivery) => {
    const target = targetOf(needs, delivery);
    return target ? [{ delivery, target, key: keyOf(target) }] : [];
  });
  const paused = await receivers.paused([...new Map(aimed.map(({ key, target }) => [key, target])).values()]);
  if (paused.length === 0) return new Set();
  const byKey = new Map(paused.map((receiver) => [keyOf(receiver), receiver]));
  const found = aimed.flatMap(({ delivery, key }) => {
    const receiver = byKey.get(key);
    return receiver ? [{ delivery, receiver }] : [];
  });
  const sums = new Map(await receivers.holdingOf([...new Set(paused.map(({ ownerNo }) => ownerNo))]));
  const held: Held[] = [];
  const full: { readonly delivery: Delivery; readonly why: string }[] = [];
  for (const { delivery, receiver } of found) {
    const { count, bytes } = sums.get(receiver.ownerNo) ?? { count: 0, bytes: 0 };
    const sum = { count: count + 1, bytes: bytes + delivery.bytes };
    const why = whyFull(sum);
    if (why !== undefined) {
      full.push({ delivery, why });
      continue;
    }
    sums.set(receiver.ownerNo, sum);
    held.push({ deliveryNo: delivery.no, receiverNo: receiver.no, bytes: delivery.bytes });
  }
  await receivers.hold(held);
  for (const { delivery, why } of full) {
    const error = `its receiver is paused, and ${why} wait for your paused receivers already`;
    const attempt = { at: now, status: undefined, error, durationMs: 0 };
    await deliveries.record({ deliveryNo: delivery.no, attempt, outcome: { state: "failed" } });
  }
  if (full.length > 0) bell.ring("expiries");
  for (const ownerNo of new Set(paused.map((receiver) => receiver.ownerNo))) news.noteWebhooks(ownerNo);
  return new Set(found.map(({ delivery }) => delivery.no));
}

/** What an owner's receivers hold too much of; undefined if they may hold this. */
function whyFull({ count, bytes }: HeldSum): string | undefined {
  if (count > limits.heldPerUserMax) return `${limits.heldPerUserMax} deliveries`;
  return bytes > limits.heldBytesPerUserMax ? `deliveries of ${limits.heldBytesPerUserMax / gib} GiB` : undefined;
}

function targetOf(needs: Holding, delivery: Delivery): Target | undefined {
  const [ownerNo, origin] = [ownerOf(needs, delivery), originOf(delivery)];
  return ownerNo === undefined || origin === "" ? undefined : { ownerNo, origin };
}

const keyOf = ({ ownerNo, origin }: Target): string => `${ownerNo} ${origin}`;

/** Notes how an attempt went for its receiver; tells once when one keeps failing. */
export async function noteReceiver(needs: Holding, delivery: Delivery, attempt: Attempt): Promise<void> {
  const { receivers, registry, ids, emit } = needs;
  const target = targetOf(needs, delivery);
  if (!target) return;
  const { ownerNo, origin } = target;
  const error = attempt.status === 200 ? undefined : (attempt.error ?? `it answered ${attempt.status}`);
  const heard = { id: ids.resource(), ownerNo, origin, at: attempt.at, error };
  const failures = await receivers.note(heard, limits.receiversPerUserMax);
  if (failures !== limits.receiverFailing || error === undefined) return;
  const userId = registry.user(ownerNo)?.id ?? "";
  emit({ type: "webhook.failing", receiverOrigin: origin, userId, failures, error });
}
