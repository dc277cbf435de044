import type { ApiKey } from "../../domain/access/key.js";
import { isFinal } from "../../domain/jobs/job.js";
import { withoutPassword } from "../../domain/jobs/webhook-url.js";
import { invalid, Refusal } from "../../errors.js";
import { limits } from "../../limits/index.js";
import { auditing } from "../../store/audit.js";
import type { Attempt, Delivery, DeliveryState, DeliveryWithAttempts } from "../../store/index.js";
import { type Caller, changeAs } from "../access/change-as.js";
import { seesMore } from "../access/visible.js";
import type { Needs } from "../needs.js";
import { iso } from "../show-resources.js";

const states = ["pending", "held", "delivered", "failed"] as const satisfies readonly DeliveryState[];

/** What a caller asks of the list of deliveries, as it came. */
export interface DeliveriesAsked {
  readonly jobId?: string | undefined;
  readonly endpointId?: string | undefined;
  readonly state?: string | undefined;
  /** The id of a delivery: only older ones. */
  readonly before?: string | undefined;
  readonly limit?: string | undefined;
}

/** A delivery as callers see it in a list: without what receivers answered. */
export const showDelivery = (delivery: DeliveryWithAttempts) => shownWith(delivery, () => ({}));

/** A delivery as callers see it alone, with what its receiver answered to each attempt. */
export const showWholeDelivery = (delivery: DeliveryWithAttempts) =>
  shownWith(delivery, ({ reply }) => (reply === undefined ? {} : { reply }));

const shownWith = (delivery: DeliveryWithAttempts, more: (attempt: Attempt) => { readonly reply?: string }) => ({
  id: delivery.webhookId,
  jobId: delivery.jobId,
  url: withoutPassword(delivery.url),
  state: delivery.state === "pending" && delivery.heldBy !== undefined ? "held" : delivery.state,
  ...(delivery.nextAt === undefined || delivery.state !== "pending" ? {} : { nextAttemptAt: iso(delivery.nextAt) }),
  attempts: delivery.attempts.map((attempt) => ({
    at: iso(attempt.at),
    ...(attempt.status === undefined ? {} : { status: attempt.status }),
    ...(attempt.error === undefined ? {} : { error: attempt.error }),
    durationMs: attempt.durationMs,
    ...more(attempt),
  })),
});

/** A page of the deliveries of a caller's jobs, newest first. */
export async function deliveriesOf(
  { registry, deliveries }: Needs<"registry" | "deliveries">,
  caller: ApiKey,
  { jobId, endpointId, state, before, limit }: DeliveriesAsked,
): Promise<DeliveryWithAttempts[]> {
  seesMore(caller, "webhook deliveries");
  if (state !== undefined && !isState(state)) throw invalid(`'state' must be one of ${states.join(", ")}.`);
  const count = countOf(limit);
  const own = registry.endpoints().filter(({ ownerNo }) => ownerNo === caller.ownerNo); // also deleted ones
  const asked = endpointId === undefined ? own : own.filter(({ id }) => id === endpointId);
  const beforeNo = before === undefined ? undefined : await noOf(before);
  return deliveries.list({ endpointNos: asked.map(({ no }) => no), jobId, state, beforeNo, limit: count });

  async function noOf(id: string): Promise<number> {
    const found = await deliveries.find(id);
    if (found && own.some(({ no }) => no === found.endpointNo)) return found.no;
    throw invalid(
      "'before' must be the id of one of your deliveries. It may have been deleted: start again without it.",
    );
  }
}

/** One of a caller's deliveries. */
export async function ownDelivery(
  { registry, deliveries }: Needs<"registry" | "deliveries">,
  caller: ApiKey,
  id: string,
): Promise<DeliveryWithAttempts> {
  seesMore(caller, "webhook deliveries");
  const found = await deliveries.find(id);
  if (found && registry.endpointByNo(found.endpointNo)?.ownerNo === caller.ownerNo) return found;
  throw new Refusal("NOT_FOUND", `There is no delivery '${id.slice(0, 80)}'. Deliveries are kept for a day.`);
}

type Redelivering = Needs<"registry" | "deliveries" | "reader" | "clock" | "bell" | "news">;

/** Sends a delivery that has ended once more, under the same id. */
export async function redeliver(needs: Redelivering, asking: Caller, id: string): Promise<DeliveryWithAttempts> {
  const { deliveries, clock, bell } = needs;
  const delivery = await changeAs(needs, asking, async (caller) => {
    const own = await ownDelivery(needs, caller, id);
    auditing.note({ action: "delivery.redeliver", resource: id });
    if (!(await deliveries.redeliver({ deliveryNo: own.no, triesMax: limits.webhookTriesMax, now: clock.now() })))
      throw new Refusal(
        "INVALID_STATE",
        (await whyNot(needs, own)) ?? "The delivery has just changed: look at it again.",
      );
    return own;
  });
  bell.ring("deliveries");
  noteDelivery(needs, delivery);
  return (await deliveries.find(id)) ?? delivery;
}

/** Tells those who look at a user's webhooks that a delivery has changed. */
export function noteDelivery({ registry, news }: Needs<"registry" | "news">, { endpointNo }: Delivery): void {
  const ownerNo = registry.endpointByNo(endpointNo)?.ownerNo;
  if (ownerNo !== undefined) news.noteWebhooks(ownerNo);
}

/** Why a delivery could not be sent once more; undefined if it could now. */
async function whyNot(
  { deliveries, reader, clock }: Redelivering,
  { no, webhookId, endpointNo, jobId }: Delivery,
): Promise<string | undefined> {
  const [newest] = await deliveries.list({ endpointNos: [endpointNo], jobId, limit: 1 });
  if (newest && newest.no !== no) return `The job was retried: send its newest delivery, ${newest.webhookId}.`;
  const now = await deliveries.find(webhookId);
  if (now?.heldBy !== undefined) return "Its receiver is paused: resume it, and the delivery is sent.";
  if (now?.state === "pending") {
    const { nextAt = 0 } = now;
    const next = nextAt > clock.now() ? `its next attempt is due at ${iso(nextAt)}` : "it is being sent now";
    return `The delivery has not ended: ${next}.`;
  }
  if (now && now.tries >= limits.webhookTriesMax)
    return `The delivery was sent ${now.tries} times, which is the most: read the job's result from /status.`;
  const job = await reader.find({ endpointNo, jobId, now: clock.now() });
  if (!job) return "There is nothing to send: the job's result is no longer kept.";
  if (isFinal(job.status)) return undefined;
  return "The job was retried and has not ended yet: its next end is a delivery of its own.";
}

const isState = (text: string): text is DeliveryState => (states as readonly string[]).includes(text);

function countOf(given = String(limits.deliveriesShown)): number {
  const count = Number(given);
  if (/^\d{1,3}$/.test(given) && count >= 1 && count <= limits.deliveriesShown) return count;
  throw invalid(`'limit' must be a whole number from 1 to ${limits.deliveriesShown}.`);
}
