import { limits } from "../limits/index.js";
import { hasEnded } from "../operations/access/authenticate.js";
import type { Needs } from "../operations/needs.js";
import type { Loop } from "./loop.js";

/**
 * Ends requests held for keys that were revoked, have expired or may no longer make them. Each server does so for its
 * own callers.
 */
export function endCallsLoop(needs: Needs<"registry" | "heldCalls" | "clock">): Loop {
  const { registry, heldCalls } = needs;
  return {
    name: "end-calls",
    topics: ["calls"],
    gapMs: limits.keyLookMs,
    async tick(now) {
      heldCalls.endInvalid((hash) => {
        const key = registry.key(hash);
        return key === undefined || hasEnded(needs, key) ? undefined : key.scope;
      });
      return heldCalls.size === 0 ? undefined : now + limits.keyLookMs;
    },
  };
}

/** Stores when keys were last used. */
export function noteUsesLoop({ registry }: Needs<"registry">): Loop {
  return {
    name: "note-uses",
    topics: [],
    gapMs: limits.keyUseMs,
    async tick(now) {
      await registry.flushUses();
      return now + limits.keyUseMs;
    },
  };
}
