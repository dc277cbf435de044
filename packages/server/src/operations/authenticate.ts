import type { Signal } from "../clock.js";
import { type ApiKey, mayChange } from "../domain/key.js";
import { Refusal, unauthorized } from "../errors.js";
import { limits } from "../limits.js";
import type { Needs } from "./needs.js";

/** The key of a request: `Bearer <key>` or the bare key (contract: Authentication). */
export async function authenticate(
  { registry, vault }: Needs<"registry" | "vault">,
  header: string | undefined,
): Promise<ApiKey> {
  const key = header?.replace(/^Bearer\s+/i, "").trim();
  const hash = key && vault.hash(key);
  const found = hash ? await registry.known(() => registry.key(hash)) : undefined;
  if (!found) throw unauthorized();
  return found;
}

/** While we stop, clients are sent away; workers and `/healthz` are not. */
export function refuseWhileDraining(draining: Signal): void {
  if (!draining.aborted) return;
  throw new Refusal("UNAVAILABLE", "The service is stopping; try again in a few seconds.", {
    retryAfterSeconds: limits.drainRetryAfterSeconds,
  });
}

/** A key for the management routes; `changes` asks for one that may change resources. */
export async function admitToManagement(
  needs: Needs<"registry" | "vault" | "draining">,
  header: string | undefined,
  changes: boolean,
): Promise<ApiKey> {
  refuseWhileDraining(needs.draining);
  const caller = await authenticate(needs, header);
  // what another server has answered is seen here by whoever asks next
  if (needs.registry.isShared) await needs.registry.refresh();
  if (changes && !mayChange(caller.scope)) throw unauthorized("This key may not change resources.");
  return caller;
}
