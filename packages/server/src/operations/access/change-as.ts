import type { Actor, Via } from "../../domain/access/audit.js";
import type { ApiKey } from "../../domain/access/key.js";
import { Refusal, unauthorized } from "../../errors.js";
import { limits } from "../../limits/index.js";
import { auditing } from "../../store/audit.js";
import type { Needs } from "../needs.js";
import { presentCaller } from "./authenticate.js";

type Asking = Needs<"registry" | "clock">;

/** A key with the origin of its request. */
export interface Caller extends ApiKey {
  readonly via?: Via;
}

/**
 * Makes a caller's change after all changes before it, across all servers, with the rights that the caller's key has
 * then: its request may have been admitted minutes ago. Throws a refusal if the key has ended or lost its right to change
 * resources. What the change notes is recorded under the caller.
 */
export async function changeAs<T>(needs: Asking, caller: Caller, change: (caller: ApiKey) => Promise<T>): Promise<T> {
  if (needs.registry.changesWaiting(caller.ownerNo) >= limits.changesWaitingMax)
    throw new Refusal("UNAVAILABLE", "Too many changes of yours are waiting; send this one again in a second.", {
      retryAfterSeconds: 1,
    });
  return needs.registry.exclusively(caller.ownerNo, async () => {
    const present = presentCaller(needs, caller, true);
    return auditing.run(actorOf(needs, present, caller.via), () => change(present));
  });
}

/**
 * Like {@link changeAs}, for users, keys and their secrets. The text that a key had before it was rotated changes none of
 * them: a leaked old text must not yield a newer one.
 */
export const changeAccessAs = <T>(needs: Asking, caller: Caller, change: (caller: ApiKey) => Promise<T>): Promise<T> =>
  changeAs(needs, caller, async (present) => {
    if (needs.registry.keyById(present.id)?.hash !== present.hash)
      throw unauthorized("This key was rotated: users and keys are changed with its new text.");
    return change(present);
  });

/** A key as the audit log names it. */
export const actorOf = ({ registry, clock }: Asking, { id, prefix, ownerNo }: ApiKey, via: Via | undefined): Actor => ({
  at: clock.now(),
  userNo: ownerNo,
  userId: registry.user(ownerNo)?.id ?? "",
  keyId: id,
  keyPrefix: prefix,
  ...via,
});
