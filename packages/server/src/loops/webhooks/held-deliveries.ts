import { limits } from "../../limits/index.js";
import type { Needs } from "../../operations/needs.js";
import type { Attempt, Delivery } from "../../store/index.js";

type Holding = Needs<"deliveries" | "receivers" | "registry" | "bell" | "emit" | "ids">;

/** The scheme, host and port that a delivery goes to; empty if its URL is none. */
const originOf = ({ url }: Delivery): string => (URL.canParse(url) ? new URL(url).origin : "");

const ownerOf = ({ registry }: Holding, { endpointNo }: Delivery): number | undefined =>
  registry.endpointByNo(endpointNo)?.ownerNo;

/**
 * Holds back deliveries to paused receivers, and returns their numbers. Beyond what a receiver may hold, they end: the
 * attempt says why.
 */
export async function heldBack(needs: Holding, due: readonly Delivery[], now: number): Promise<ReadonlySet<number>> {
  const { deliveries, receivers, bell } = needs;
  const paused = due.length === 0 ? [] : await receivers.paused();
  if (paused.length === 0) return new Set();
  const byTarget = new Map(paused.map((receiver) => [`${receiver.ownerNo} ${receiver.origin}`, receiver.no]));
  const found = due.flatMap((delivery) => {
    const receiverNo = byTarget.get(`${ownerOf(needs, delivery)} ${originOf(delivery)}`);
    return receiverNo === undefined ? [] : [{ delivery, receiverNo }];
  });
  const counts = new Map(await receivers.holding([...new Set(found.map(({ receiverNo }) => receiverNo))]));
  for (const { delivery, receiverNo } of found) {
    const count = counts.get(receiverNo) ?? 0;
    counts.set(receiverNo, count + 1);
    if (count < limits.receiverHeldMax) {
      await receivers.hold(delivery.no, receiverNo);
      continue;
    }
    const error = `its receiver is paused, and ${limits.receiverHeldMax} deliveries wait for it already`;
    const attempt = { at: now, status: undefined, error, durationMs: 0 };
    await deliveries.record({ deliveryNo: delivery.no, attempt, outcome: { state: "failed" } });
    bell.ring("expiries");
  }
  return new Set(found.map(({ delivery }) => delivery.no));
}

/** Notes how an attempt went for its receiver; tells once when one keeps failing. */
export async function noteReceiver(needs: Holding, delivery: Delivery, attempt: Attempt): Promise<void> {
  const { receivers, registry, ids, emit } = needs;
  const ownerNo = ownerOf(needs, delivery);
  const origin = originOf(delivery);
  if (ownerNo === undefined || origin === "") return;
  const error = attempt.status === 200 ? undefined : (attempt.error ?? `it answered ${attempt.status}`);
  const heard = { id: ids.resource(), ownerNo, origin, at: attempt.at, error };
  const failures = await receivers.note(heard, limits.receiversPerUserMax);
  if (failures !== limits.receiverFailing || error === undefined) return;
  const userId = registry.user(ownerNo)?.id ?? "";
  emit({ type: "webhook.failing", receiverOrigin: origin, userId, failures, error });
}
