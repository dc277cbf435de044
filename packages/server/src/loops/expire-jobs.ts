import { limits } from "../limits/index.js";
import { deleteExpired, timeOutJob } from "../operations/jobs/change-job.js";
import type { Needs } from "../operations/needs.js";
import type { Loop } from "./loop.js";

type Expiring = Needs<
  | "jobs"
  | "reader"
  | "clock"
  | "bell"
  | "registry"
  | "emit"
  | "deliveries"
  | "receivers"
  | "decisions"
  | "shared"
  | "audit"
  | "here"
>;

/**
 * Deletes expired jobs in small batches, and old records along with them. Reads hide expired jobs at once; this cleans
 * up.
 */
export function expireJobsLoop(needs: Expiring): Loop {
  let recordsAt = 0;
  return {
    name: "expire-jobs",
    topics: ["expiries"],
    gapMs: limits.expireGapMs,
    async tick(now, signal) {
      if (now >= recordsAt) {
        recordsAt = now + limits.forgetMs;
        await forgetRecords(needs, now);
      }
      while (!signal.aborted && (await deleteExpired(needs, now)));
      return needs.reader.nextExpiry();
    },
  };
}

async function forgetRecords(needs: Expiring, now: number): Promise<void> {
  await needs.registry.forgetWorkers(now - limits.workerRowKeptMs);
  await needs.registry.forgetUsers(now - limits.userRowKeptMs);
  const { audit, deliveries, receivers, decisions } = needs;
  const auditBefore = now - (needs.here.auditKeptMs ?? limits.auditKeptMsDefault);
  await inBatches((most) => deliveries.forget(now - limits.deliveryKeptMs, most));
  await inBatches((most) => receivers.forget(now - limits.receiverKeptMs, most));
  await inBatches((most) => decisions.forget(now - limits.decisionKeptMs, most));
  await inBatches((most) => audit.forget(auditBefore, most));
  for (const { no } of needs.registry.users())
    await inBatches((most) => audit.trim(no, limits.auditEntriesPerUserMax, most));
  await needs.shared?.forgetSilent(now - limits.hostKeptMs);
}

/** Deletes all that is due, a few rows in each commit: others' writes come in between. */
async function inBatches(forget: (most: number) => Promise<number>): Promise<void> {
  while ((await forget(limits.forgottenAtOnce)) === limits.forgottenAtOnce);
}

/** Ends running jobs that have exceeded their execution timeout. */
export function timeOutJobsLoop(needs: Expiring): Loop {
  // after a gap, workers' messages may still be on their way: they are heard first
  let judgeAt = needs.clock.now() + limits.absentAfterMs;
  needs.clock.onGap(() => {
    judgeAt = needs.clock.now() + limits.absentAfterMs;
  });
  return {
    name: "time-out-jobs",
    topics: ["deadlines"],
    gapMs: limits.timeOutGapMs,
    async tick(now) {
      if (now < judgeAt) return judgeAt;
      for (;;) {
        const overdue = await needs.reader.overdue({ now, limit: limits.sweepBatch });
        for (const job of overdue) await timeOutJob(needs, job);
        if (overdue.length < limits.sweepBatch) return needs.reader.nextDeadline();
      }
    },
  };
}
