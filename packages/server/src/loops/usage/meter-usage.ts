import { limits } from "../../limits/index.js";
import { EndMarks } from "../../memory/end-marks.js";
import type { Needs } from "../../operations/needs.js";
import { bankVolumes, bankWorkers } from "../../operations/usage/meter-usage.js";
import type { Loop } from "../loop.js";

/**
 * Banks usage once a minute. What it counts follows from the rows of workers and volumes, so that a server that dies
 * loses none of it: the next one banks it.
 */
export function meterUsageLoop(needs: Needs<"registry" | "usage" | "clock">): Loop {
  /** Ended workers that are banked whole. */
  const over = new EndMarks();
  let forgottenAt = 0;
  return {
    name: "meter-usage",
    topics: [],
    gapMs: limits.netMs,
    async tick(now) {
      await bankWorkers(needs, over);
      await bankVolumes(needs);
      if (now >= forgottenAt + limits.usageMarksKeptMs) {
        while ((await needs.usage.forgetMarks(now - limits.usageMarksKeptMs, limits.forgottenAtOnce)) > 0);
        forgottenAt = now;
      }
      return now + limits.usageTickMs;
    },
  };
}
