import { limits } from "../limits/index.js";
import type { Loop } from "./loop.js";

/** Saves our time once a minute, so that a restarted server continues from it, whatever the system clock says. */
export function keepTimeLoop(note: () => void): Loop {
  return {
    name: "keep-time",
    topics: [],
    gapMs: limits.loopGapMs,
    async tick(now) {
      note();
      return now + limits.clockKeepMs;
    },
  };
}
