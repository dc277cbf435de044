import type { Signal } from "../../clock.js";
import { type ApiKey, mayChange } from "../../domain/access/key.js";
import { Refusal, unauthorized } from "../../errors.js";
import { limits } from "../../limits/index.js";
import type { Needs } from "../needs.js";

const hashOf = ({ vault }: Needs<"vault">, header: string | undefined): string | undefined => {
  const key = header?.replace(/^Bearer\s+/i, "").trim();
  return key ? vault.hashKey(key) : undefined;
};

/** The key of a request: `Bearer <key>` or the bare key (contract: Authentication). */
export async function authenticate(needs: Needs<"registry" | "vault">, header: string | undefined): Promise<ApiKey> {
  const hash = hashOf(needs, header);
  const found = hash && (await needs.registry.known("key", hash, () => needs.registry.key(hash)));
  if (!found) throw unauthorized();
  return found;
}

/** The same from memory alone; undefined where it is not known there. */
export function knownKey(needs: Needs<"registry" | "vault">, header: string | undefined): ApiKey | undefined {
  const hash = hashOf(needs, header);
  return hash === undefined ? undefined : needs.registry.key(hash);
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
