import { limits } from "../limits/index.js";
import type { Loop } from "./loop.js";

/** Notes our time once a minute, so that a server that starts again goes on from it, whatever the wall says by then. */
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
