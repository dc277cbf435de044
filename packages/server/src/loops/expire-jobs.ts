import { limits } from "../limits/index.js";
import { deleteExpired, timeOutJob } from "../operations/jobs/change-job.js";
import type { Needs } from "../operations/needs.js";
import type { Loop } from "./loop.js";

type Expiring = Needs<
  "jobs" | "reader" | "clock" | "bell" | "registry" | "emit" | "deliveries" | "decisions" | "shared" | "audit" | "here"
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
  await needs.deliveries.forget(now - limits.deliveryKeptMs);
  await needs.decisions.forget(now - limits.decisionKeptMs);
  const auditBefore = now - (needs.here.auditKeptMs ?? limits.auditKeptMsDefault);
  while ((await needs.audit.forget(auditBefore, limits.auditForgottenAtOnce)) === limits.auditForgottenAtOnce);
  for (const { no } of needs.registry.users()) {
    const { auditEntriesPerUserMax: kept, auditForgottenAtOnce: some } = limits;
    while ((await needs.audit.trim(no, kept, some)) === some);
  }
  await needs.shared?.forgetSilent(now - limits.hostKeptMs);
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
