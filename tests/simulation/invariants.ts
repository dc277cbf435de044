import { isFinal } from "../../packages/server/src/domain/jobs/job.js";
import { limits } from "../../packages/server/src/limits/index.js";
import type { Stores } from "../../packages/server/src/store/index.js";
import type { Clients } from "./clients.js";
import type { Host } from "./host.js";
import { expiryOf, type Known } from "./known.js";
import type { Ledger } from "./ledger.js";
import type { Server } from "./server.js";

/** The state that can be checked when everything is at rest. */
export interface Scene {
  readonly stores: Stores;
  readonly ledger: Ledger;
  readonly clients: Clients;
  readonly host: Host;
  readonly server: Server | undefined;
  readonly now: () => number;
  broken(rule: string, sentence: string): void;
}

/** The store must match its commits, and its counts must match a recount. */
export async function checkStore(
  { stores, ledger, now, broken }: Scene,
  endpointNos: readonly number[],
): Promise<void> {
  for (const no of endpointNos) {
    const rows = new Map(
      (await stores.reader.list({ endpointNo: no, limit: 10_000, now: 0 })).jobs.map((row) => [row.id, row]),
    );
    for (const job of ledger.jobs.values()) {
      if (job.endpointNo !== no || job.gone) continue;
      const row = rows.get(job.id);
      if (!row) {
        if (expiryOf(job) > now()) broken("no job is deleted early", `${job.id}, ${job.status}, is gone`);
        job.gone = true;
        continue;
      }
      const { status, starts, excused, retries, ttlEndAt } = job;
      const expected = { status, starts, excused, retries, ttlEndAt };
      for (const [name, value] of Object.entries(expected)) {
        const found = row[name as keyof typeof expected];
        if (found !== value)
          broken("the store holds what was committed", `${job.id}: ${name} is ${found}, not ${value}`);
      }
      if (status === "IN_PROGRESS" && row.workerNo !== job.holder)
        broken("one holder", `${job.id} is at ${row.workerNo}`);
      if (!job.vanished && row.expiresAt !== expiryOf(job))
        broken("ttl and retention", `${job.id} (${status}) ends at ${row.expiresAt}, not ${expiryOf(job)}`);
    }
    const [kept, counted] = [await stores.tallies.tally(no), await stores.tallies.recount(no)];
    const all = { ...counted, ...ledger.countsOf(no) };
    if (JSON.stringify(kept) !== JSON.stringify(all))
      broken("tallies", `${JSON.stringify(kept)} instead of ${JSON.stringify(all)}`);
  }
}

/** A lost worker's job must be given back in time. */
export function checkHolders({ ledger, host, server, now, broken }: Scene): void {
  if (!server?.isReady || server.isHeld || server.isOver) return;
  for (const job of ledger.jobs.values()) {
    if (job.status !== "IN_PROGRESS" || job.gone) continue;
    const worker = ledger.workers.get(job.holder as number);
    const lostAt = worker && host.doubles.get(worker.id)?.lostSince(job.id, job.takenAt, worker.hasPinged);
    if (lostAt === undefined) continue;
    const late = now() - Math.max(lostAt, server.listensSince, job.takenAt);
    if (late > 35_000) broken("given back within 35 s", `${job.id} is at ${worker?.id}, lost ${late} ms ago`);
  }
}

/** Rows and processes must agree, except in the moment before an end is noticed. */
export function checkProcesses({ ledger, host, server, now, broken }: Scene): void {
  for (const sentence of host.violations) broken("the provider's contract", sentence);
  const rows = new Map([...ledger.workers.values()].map((row) => [row.id, row]));
  for (const double of host.doubles.values()) {
    const row = rows.get(double.id);
    if (!row) broken("no process without a row", double.id);
    else if (double.isAlive && row.endedAt !== undefined) broken("no process without a row", `${double.id} lives on`);
    if (double.isAlive || row?.endedAt !== undefined || !server?.isReady || server.isHeld || server.isOver) continue;
    const late = now() - Math.max(double.diedAt as number, server.listensSince);
    if (late > limits.netMs + 1_000) broken("no row without a process", `${double.id} ended ${late} ms ago`);
  }
}

/** No client may wait for a job that is over. */
export function checkWaiting({ ledger, clients, server, now, broken }: Scene): void {
  if (!server?.isReady || server.isHeld || server.isOver) return;
  for (const { jobId, untilAt } of clients.waiting) {
    const job = ledger.jobs.get(jobId);
    if (!job) continue;
    const why =
      job.gone || job.vanished || expiryOf(job) <= now() ? "gone" : isFinal(job.status) ? job.status : undefined;
    if (why) broken("a waiting client gets the result", `${jobId} is ${why}, and a client still waits for it`);
    if (now() > untilAt) broken("a waiting client gets the result", `a client waits for ${jobId} for too long`);
  }
}

/** Each end of a job with a webhook must have one delivery, of at most three attempts. */
export async function checkDeliveries(
  { stores, ledger, now, broken }: Scene,
  endpointNos: readonly number[],
  isOver: boolean,
) {
  const deliveries = await stores.deliveries.list({ endpointNos, limit: 10_000 });
  const ofJob = (job: Known) => deliveries.filter(({ jobId }) => jobId === job.id);
  for (const job of ledger.jobs.values()) {
    // Records are kept for a day.
    if (now() - job.submitted.createdAt > limits.deliveryKeptMs - 3_600_000) continue;
    const due = job.submitted.webhook === undefined ? 0 : job.ends;
    const made = ofJob(job);
    if (made.length !== due) broken("webhooks", `${job.id} ended ${due} times, with ${made.length} deliveries`);
    for (const { state, attempts, webhookId } of made) {
      const statuses = attempts.map(({ status }) => status);
      if (attempts.length > limits.webhookAttemptsMax) broken("webhooks", `${webhookId}: ${attempts.length} attempts`);
      if (state === "delivered" && statuses.at(-1) !== 200) broken("webhooks", `${webhookId} was not delivered`);
      if (state === "pending" && isOver) broken("webhooks", `${webhookId} of ${job.id} is never sent`);
      if (state === "failed" && attempts.length < limits.webhookAttemptsMax && job.again === 0)
        broken("webhooks", `${webhookId} was given up after ${attempts.length} attempts`);
    }
  }
}
