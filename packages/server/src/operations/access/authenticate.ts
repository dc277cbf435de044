import type { Signal } from "../../clock.js";
import { type ApiKey, isExpired, mayChange } from "../../domain/access/key.js";
import { forbidden, Refusal, unauthorized } from "../../errors.js";
import { limits } from "../../limits/index.js";
import type { LiveWorker, Needs } from "../needs.js";

const hashOf = ({ vault }: Needs<"vault">, header: string | undefined): string | undefined => {
  const key = header?.replace(/^Bearer\s+/i, "").trim();
  return key ? vault.hashKey(key) : undefined;
};

type Authenticating = Needs<"registry" | "vault" | "clock">;

/** The key of a request, sent as `Bearer <key>` or bare (contract: Authentication). */
export async function authenticate(needs: Authenticating, header: string | undefined): Promise<ApiKey> {
  const hash = hashOf(needs, header);
  const found = hash && (await needs.registry.known("key", hash, () => needs.registry.key(hash)));
  if (!found) throw unauthorized();
  if (hasEnded(needs, found)) throw keyEnded();
  needs.registry.noteUse(found, needs.clock.now());
  return found;
}

/** Like `authenticate`, but from memory alone; undefined if the key is not there, or does not work. */
export function knownKey(needs: Authenticating, header: string | undefined): ApiKey | undefined {
  const hash = hashOf(needs, header);
  const found = hash === undefined ? undefined : needs.registry.key(hash);
  if (found === undefined || hasEnded(needs, found)) return undefined;
  needs.registry.noteUse(found, needs.clock.now());
  return found;
}

/**
 * Whether a key has expired or its user is deleted. Callers choose the expiry by their own clocks, and our clock may be
 * far behind the machine's, so the later of these two clocks decides.
 */
export const hasEnded = ({ registry, clock }: Needs<"registry" | "clock">, key: ApiKey): boolean =>
  (key.expiresAt !== undefined && isExpired(key, Math.max(clock.now(), clock.wallNow()))) ||
  registry.user(key.ownerNo)?.deletedAt !== undefined;

export const keyEnded = () => unauthorized("This API key was revoked or rotated, or has expired: use another one.");

/** For a request under way whose key has ended or may no longer make it. */
export const keyEndedMeanwhile = () =>
  unauthorized(
    "This API key was revoked, rotated or narrowed, or has expired, while the request was under way: use another one.",
  );

/** Whether the header or the token of the URL is the worker's secret. */
export function hasSecret(
  { vault }: Needs<"vault">,
  { row: { secretHash } }: LiveWorker,
  header: string | undefined,
  token: string | null | undefined,
): boolean {
  if (secretHash === undefined) return false;
  const bare = header?.replace(/^Bearer\s+/i, "");
  return [token, bare].some((secret) => secret && vault.equal(vault.hashKey(secret), secretHash));
}

/** Refuses clients while the server stops. Not called for workers and `/healthz`. */
export function refuseWhileDraining(draining: Signal): void {
  if (!draining.aborted) return;
  throw new Refusal("UNAVAILABLE", "The service is stopping; try again in a few seconds.", {
    retryAfterSeconds: limits.drainRetryAfterSeconds,
  });
}

/** Authenticates a management request; with `changes`, the key must be allowed to change resources. */
export async function admitToManagement(
  needs: Authenticating & Needs<"draining">,
  header: string | undefined,
  changes: boolean,
): Promise<ApiKey> {
  refuseWhileDraining(needs.draining);
  const caller = await authenticate(needs, header);
  // a change that another server has confirmed must be visible to the next request here
  if (needs.registry.isShared) await needs.registry.refresh();
  return presentCaller(needs, caller, changes);
}

/** The caller's key as it is now. Throws if it has ended or, with `changes`, may not change resources. */
export function presentCaller(needs: Needs<"registry" | "clock">, caller: ApiKey, changes: boolean): ApiKey {
  const present = needs.registry.key(caller.hash);
  if (!present || hasEnded(needs, present)) throw keyEnded();
  if (changes && !mayChange(present.scope)) throw forbidden("This key may not change resources.");
  return present;
}
