import { statusPieces, statusText } from "../domain/status-text.js";
import { limits } from "../limits.js";
import type { Needs } from "../operations/needs.js";
import type { Sender } from "../sender.js";
import type { Attempt, Delivery } from "../store.js";
import type { Loop } from "./loop.js";

type Delivering = Needs<"reader" | "deliveries" | "clock" | "bell" | "registry" | "vault" | "emit">;

/** Sends what is due: 200 is success, anything else is tried twice more, 10 s apart. A slow receiver delays its own only. */
export function deliverWebhooksLoop(needs: Delivering, sender: Sender): Loop {
  const inFlight = new Set<number>();
  const perHost = new Map<string, number>();
  /** Those whose attempt ended while a page was being read: the page may show them as they were before it. */
  const endedMeanwhile = new Set<number>();
  /** Where the next page begins; undefined: at the oldest. */
  let after: Delivery | undefined;

  async function deliver(delivery: Delivery, host: string, signal: AbortSignal): Promise<void> {
    const startedAt = needs.clock.now();
    const sent = await send(needs, sender, delivery, signal);
    if (signal.aborted) return; // we stop: the attempt does not count, and comes again after the restart
    const attempt: Attempt = { at: startedAt, ...sent, durationMs: needs.clock.now() - startedAt };
    const state =
      sent.status === 200 ? "delivered" : delivery.tries + 1 >= limits.webhookAttemptsMax ? "failed" : "pending";
    const nextAt = state === "pending" ? needs.clock.now() + limits.webhookRetryMs : undefined;
    await needs.deliveries.record(delivery.no, attempt, nextAt === undefined ? { state } : { state, nextAt });
    needs.emit({ type: "webhook.attempted", jobId: delivery.jobId, host, ...sent, final: state !== "pending" });
    if (state !== "pending") needs.bell.ring("expiries");
  }

  function launch(delivery: Delivery, signal: AbortSignal): void {
    const host = URL.canParse(delivery.url) ? new URL(delivery.url).host : "";
    if (endedMeanwhile.has(delivery.no)) return;
    if (inFlight.has(delivery.no) || inFlight.size >= limits.webhookConcurrency) return;
    if ((perHost.get(host) ?? 0) >= limits.webhookConcurrencyPerHost) return;
    inFlight.add(delivery.no);
    perHost.set(host, (perHost.get(host) ?? 0) + 1);
    void deliver(delivery, host, signal)
      .catch((error) =>
        needs.emit({ type: "server.warning", message: "a webhook delivery could not be recorded", error }),
      )
      .finally(() => {
        inFlight.delete(delivery.no);
        endedMeanwhile.add(delivery.no);
        perHost.set(host, perHost.get(host)! - 1);
        if (perHost.get(host) === 0) perHost.delete(host);
        needs.bell.ring("deliveries");
      });
  }

  return {
    name: "deliver-webhooks",
    topics: ["deliveries"],
    gapMs: limits.loopGapMs,
    async tick(now, signal) {
      // a page a tick, round and round: those in flight are due still, and some wait for their host
      endedMeanwhile.clear();
      const due = await needs.deliveries.due(now, limits.webhookPage, after);
      for (const delivery of due) launch(delivery, signal);
      const wasFirst = after === undefined;
      after = due.length < limits.webhookPage ? undefined : due.at(-1);
      if (after !== undefined) return now;
      // the end of one of those in flight rings, too
      if (inFlight.size > 0 || due.some((delivery) => !inFlight.has(delivery.no)) || !wasFirst) return now + 1_000;
      return needs.deliveries.nextDue();
    },
  };
}

async function send(needs: Delivering, sender: Sender, delivery: Delivery, signal: AbortSignal) {
  const found = await needs.reader.findTexts(delivery.endpointNo, delivery.jobId, 0, limits.outputBytesHard);
  const input = found && (await needs.reader.input(found.job.no));
  const endpoint = needs.registry.endpointByNo(delivery.endpointNo);
  const owner = endpoint && needs.registry.user(endpoint.ownerNo);
  if (!found || !input || !owner) return { status: undefined, error: "the job or its endpoint is gone" };
  const extra = `,"input":${Buffer.concat(input)},"webhook":${JSON.stringify(delivery.url)}`;
  const { job, texts } = found;
  const pieces = texts && statusPieces(job, texts, needs.clock.now(), extra).map((piece) => Buffer.from(piece));
  const body = pieces ? Buffer.concat(pieces).toString() : statusText(job, needs.clock.now(), undefined, extra);
  // the only place of plain wall time: receivers compare it with their own clock
  const signed = needs.vault.sign(needs.vault.open(owner.webhookSecret), delivery.webhookId, Date.now(), body);
  return sender.post(
    delivery.url,
    body,
    { ...signed, "content-type": "application/json", "user-agent": "millrace" },
    signal,
  );
}
