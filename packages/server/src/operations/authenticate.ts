import { type ApiKey, mayChange } from "../domain/key.js";
import { Refusal, unauthorized } from "../errors.js";
import { limits } from "../limits.js";
import type { Needs } from "./needs.js";

/** The key of a request: `Bearer <key>` or the bare key (contract: Authentication). */
export function authenticate({ registry, vault }: Needs<"registry" | "vault">, header: string | undefined): ApiKey {
  const key = header?.replace(/^Bearer\s+/i, "").trim();
  const found = key ? registry.key(vault.hash(key)) : undefined;
  if (!found) throw unauthorized();
  return found;
}

/** While we stop, clients are sent away; workers and `/healthz` are not. */
export function refuseWhileDraining(draining: AbortSignal): void {
  if (!draining.aborted) return;
  throw new Refusal("UNAVAILABLE", "The service is stopping; try again in a few seconds.", {
    retryAfterSeconds: limits.drainRetryAfterSeconds,
  });
}

/** A key for the management routes; `changes` asks for one that may change resources. */
export function admitToManagement(
  needs: Needs<"registry" | "vault" | "draining">,
  header: string | undefined,
  changes: boolean,
): ApiKey {
  refuseWhileDraining(needs.draining);
  const caller = authenticate(needs, header);
  if (changes && !mayChange(caller.scope)) throw unauthorized("This key may not change resources.");
  return caller;
}
