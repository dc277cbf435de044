import type { Connection } from "../connection.js";
import { limits } from "../limits.js";
import { Backoff, pause } from "../pause.js";

interface Parts {
  readonly url: string;
  readonly connection: Connection;
  /** Aborted when there is nothing left to stop. */
  readonly signal: AbortSignal;
  /** Stops a job; false if it was stopped already or is unknown. */
  stop(jobId: string): boolean;
}

/** Waits for the server to name cancelled or timed-out jobs, and stops them. */
export async function watchStops({ url, connection, signal, stop }: Parts): Promise<void> {
  const backoff = new Backoff();
  while (!signal.aborted) {
    const askedAt = performance.now();
    const reply = await connection.call("GET", url, { signal, silenceMaxMs: limits.pollSilenceMaxMs });
    if (reply.status === 200) {
      backoff.reset();
      const news = jobsToStop(reply.text).filter(stop);
      if (news.length === 0) await pause(limits.stopRepeatMs, signal);
    } else if (reply.status === 204) {
      backoff.reset();
      // A stopping worker's polls return at once: without a pause this would be a busy loop.
      if (performance.now() - askedAt < limits.unheldPollMs) await pause(limits.stopRepeatMs, signal);
    } else await pause(backoff.nextMs(reply.retryAfterMs), signal);
  }
}

function jobsToStop(text: string): string[] {
  try {
    const answer = JSON.parse(text) as { jobsToStop?: unknown } | null;
    const ids = answer?.jobsToStop;
    return Array.isArray(ids) ? ids.filter((id) => typeof id === "string") : [];
  } catch {
    return [];
  }
}
