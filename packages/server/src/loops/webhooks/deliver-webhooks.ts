import { realTime } from "../../clock.js";
import type { User } from "../../domain/access/user.js";
import { webhookSpan } from "../../domain/jobs/spans.js";
import { traceparentOf } from "../../domain/jobs/trace.js";
import { limits } from "../../limits/index.js";
import type { Body } from "../../lines/webhook-bytes.js";
import type { Call } from "../../lines/webhook-calls.js";
import type { Needs } from "../../operations/needs.js";
import { noteDelivery } from "../../operations/webhooks/deliveries.js";
import { webhookBody } from "../../operations/webhooks/webhook-body.js";
import type { Sender, SendOutcome } from "../../sender.js";
import type { Attempt, Delivery, DueDelivery } from "../../store/index.js";
import type { Loop } from "../loop.js";
import { heldBack, noteReceiver } from "./held-deliveries.js";
import { type Made, WebhookMemory } from "./webhook-memory.js";

type Delivering = Needs<
  "reader" | "deliveries" | "receivers" | "clock" | "ids" | "bell" | "registry" | "vault" | "emit" | "isTraced" | "news"
>;

/** A delivery that may be attempted. */
interface Due extends Call, Body {
  readonly delivery: Delivery;
}

/**
 * Sends due deliveries: 200 is success, anything else is retried twice, 10 s apart. Silent receivers leave room for
 * others, and large bodies wait their turn before they are read.
 * Reads and writes that fail are retried with growing pauses. An attempt that was made but could not be recorded is not
 * repeated.
 */
export function deliverWebhooksLoop(needs: Delivering, sender: Sender, memory = new WebhookMemory()): Loop {
  const { calls, bodies } = memory;
  /** Where the next page begins; undefined: at the oldest delivery. */
  let after: Delivery | undefined;
  /** The endpoint whose first deliveries were looked at last. */
  let headsTo = 0;

  /**
   * The next page of a round over all due deliveries, oldest first. While one goes on, which may take seconds if some
   * endpoint has very many, also the first deliveries of some endpoints: nobody waits for the others' rounds.
   */
  async function nextPage(now: number): Promise<{ page: readonly DueDelivery[]; due: readonly DueDelivery[] }> {
    const page = await needs.deliveries.due({ now, limit: limits.webhookPage, after });
    if (after === undefined && page.length < limits.webhookPage) return { page, due: page };
    const heads = await needs.deliveries.heads({ now, afterEndpointNo: headsTo, endpoints: limits.webhookHeads });
    headsTo = heads.lookedTo ?? 0;
    const nos = new Set(page.map(({ no }) => no));
    return { page, due: [...page, ...heads.due.filter(({ no }) => !nos.has(no))] };
  }

  async function deliver({ delivery, host }: Due, signal: AbortSignal): Promise<Made | undefined> {
    const startedAt = needs.clock.now();
    const attempt = delivery.tries + 1;
    const traced = needs.isTraced ? await traceOfDelivery(needs, delivery) : undefined;
    const traceparent = traced && traceparentOf(traced.job, traced.trace, webhookSpan(attempt));
    const sent = await send(needs, sender, delivery, { signal, traceparent });
    if (signal.aborted) return undefined; // we are stopping: the attempt does not count and is repeated later
    const made = judge(delivery, { at: startedAt, ...sent, durationMs: needs.clock.now() - startedAt });
    memory.note(made);
    const final = made.outcome.state !== "pending";
    const { status, error } = sent; // the reply may say anything: it is not for the log
    const { at, durationMs } = made.attempt;
    const span = traced && { traced: { ...traced, attempt, at, durationMs } };
    needs.emit({ type: "webhook.attempted", jobId: delivery.jobId, host, status, error, final, ...span });
    return made;
  }

  async function record({ delivery, attempt, outcome }: Made): Promise<void> {
    await needs.deliveries.record({ deliveryNo: delivery.no, attempt, outcome });
    memory.recorded(delivery.no);
    // what people are shown of a receiver must not hold up its deliveries
    await noteReceiver(needs, delivery, attempt).catch((error) =>
      needs.emit({ type: "server.warning", message: "a webhook receiver could not be noted just now", error }),
    );
    noteDelivery(needs, delivery);
    if (outcome.state !== "pending") needs.bell.ring("expiries");
  }

  /** Does a delivery's next step. If the database fails, the delivery pauses before it is retried. */
  function start({ no, jobId }: Delivery, step: () => Promise<void>, signal: AbortSignal): void {
    memory.begin(no);
    void step()
      .catch((error) => {
        if (signal.aborted || !memory.pause(no, needs.clock.now())) return;
        const message = `the webhook of job ${jobId} could not be read or recorded, and will be retried with growing pauses`;
        needs.emit({ type: "server.warning", message, error });
      })
      .finally(() => {
        memory.end(no);
        needs.bell.ring("deliveries");
      });
  }

  function launch(due: Due, now: number, signal: AbortSignal): void {
    if (!calls.mayCall(due, now)) return void bodies.pass(due);
    const giveBack = bodies.lend(due);
    if (!giveBack) return;
    const leave = calls.enter(due, now);
    const step = async () => {
      let made: Made | undefined;
      try {
        made = await deliver(due, signal);
      } finally {
        giveBack();
        leave({ isSilent: made !== undefined && isSilent(made.attempt), now: needs.clock.now() });
      }
      if (made) await record(made);
    };
    start(due.delivery, step, signal);
  }

  const toDue = (delivery: DueDelivery): Due => ({
    delivery,
    no: delivery.no,
    bytes: delivery.bytes,
    ownerNo: needs.registry.endpointByNo(delivery.endpointNo)?.ownerNo ?? 0,
    host: URL.canParse(delivery.url) ? new URL(delivery.url).host : "",
  });

  return {
    name: "deliver-webhooks",
    topics: ["deliveries"],
    gapMs: limits.loopGapMs,
    async tick(now, signal) {
      for (const made of memory.unrecorded(now)) start(made.delivery, () => record(made), signal);
      // one page per tick, round and round: deliveries in flight are still due, and some wait for their host
      const released = await needs.receivers.release(now, limits.receiverReleasedAtOnce);
      memory.beginPage();
      const { page, due } = await nextPage(now);
      const startable = due.filter(({ no }) => memory.mayBegin(no, now));
      const held = await heldBack(needs, startable, now);
      const ready = startable.filter(({ no }) => !held.has(no)).map(toDue);
      for (const each of calls.inTurns(ready)) launch(each, now, signal);
      const wasFirst = after === undefined;
      after = page.length < limits.webhookPage ? undefined : page.at(-1);
      if (after !== undefined || released) return now;
      bodies.endRound();
      // the end of a delivery in flight rings as well
      if (memory.isBusy || due.length > 0 || !wasFirst) return now + limits.webhookLookMs;
      return needs.deliveries.nextDue();
    },
  };
}

/** Whether a receiver left an attempt waiting without an answer. */
const isSilent = ({ status, durationMs }: Attempt): boolean =>
  status === undefined && durationMs >= limits.webhookSilentMs;

/** What an attempt means for its delivery. */
function judge(delivery: Delivery, attempt: Attempt): Made {
  if (attempt.status === 200) return { delivery, attempt, outcome: { state: "delivered" } };
  if (delivery.tries + 1 >= limits.webhookAttemptsMax) return { delivery, attempt, outcome: { state: "failed" } };
  const nextAt = attempt.at + attempt.durationMs + limits.webhookRetryMs;
  return { delivery, attempt, outcome: { state: "pending", nextAt } };
}

/** Whose trace a delivery belongs to; undefined if its job is gone. */
async function traceOfDelivery({ reader, clock }: Delivering, { endpointNo, jobNo, jobId }: Delivery) {
  const job = await reader.find({ endpointNo, jobId, now: clock.now() });
  const sent = job && (await reader.submission(jobNo));
  return job && { job: { id: job.id, queuedAt: job.queuedAt }, trace: sent?.trace };
}

interface Sending {
  readonly signal: AbortSignal;
  readonly traceparent: string | undefined;
}

async function send(
  needs: Delivering,
  sender: Sender,
  delivery: Delivery,
  { signal, traceparent }: Sending,
): Promise<SendOutcome> {
  const endpoint = needs.registry.endpointByNo(delivery.endpointNo);
  const owner = endpoint && needs.registry.user(endpoint.ownerNo);
  const body = owner && (await webhookBody(needs, delivery));
  if (!body) return { status: undefined, error: "the job or its endpoint is gone" };
  const secrets = secretsOf(needs, owner);
  if (secrets === undefined) return { status: undefined, error: "the signing secret could not be opened" };
  // receivers compare it with their own clock
  const signed = await needs.vault.sign(secrets, delivery.webhookId, realTime.wallMs(), body);
  const traced = traceparent === undefined ? {} : { traceparent };
  const headers = { ...signed, "content-type": "application/json", "user-agent": "millrace", ...traced };
  return sender.post(delivery.url, body, headers, signal);
}

/** The secrets that sign a user's webhooks: after a rotation the old one, too. Undefined if one cannot be opened. */
function secretsOf(needs: Needs<"vault" | "emit" | "clock">, owner: User): string[] | undefined {
  const { webhookSecret, oldWebhookSecret: old } = owner;
  const sealed = old && needs.clock.now() < old.until ? [webhookSecret, old.sealed] : [webhookSecret];
  try {
    return sealed.map((each) => needs.vault.open(each));
  } catch (error) {
    needs.emit({ type: "server.warning", message: "a webhook's signing secret could not be opened", error });
    return undefined;
  }
}
