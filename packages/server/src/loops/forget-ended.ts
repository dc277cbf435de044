import { limits } from "../limits/index.js";
import type { Needs } from "../operations/needs.js";
import type { Loop } from "./loop.js";

/** Forgets workers that ended, and endpoints that were deleted, long ago. Each server does so for its own memory. */
export function forgetEndedLoop({ registry }: Needs<"registry">): Loop {
  return {
    name: "forget-ended",
    topics: [],
    gapMs: limits.forgetMs,
    async tick(now) {
      await registry.forgetEnded(now - limits.workerRowKeptMs, now - limits.neverRanKeptMs);
      await registry.forgetChanges();
      return now + limits.forgetMs;
    },
  };
}
