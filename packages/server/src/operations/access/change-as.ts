import type { ApiKey } from "../../domain/access/key.js";
import { unauthorized } from "../../errors.js";
import type { Needs } from "../needs.js";
import { presentCaller } from "./authenticate.js";

type Asking = Needs<"registry" | "clock">;

/**
 * Makes a caller's change after all changes before it, across all servers, as the caller's key may then: its request
 * may have been admitted minutes ago. Throws a refusal if the key has ended or lost its right to change resources.
 */
export const changeAs = <T>(needs: Asking, caller: ApiKey, change: (caller: ApiKey) => Promise<T>): Promise<T> =>
  needs.registry.exclusively(async () => change(presentCaller(needs, caller, true)));

/**
 * Like {@link changeAs}, for users, keys and their secrets. The text that a key had before it was rotated changes none of
 * them: whoever has only that must not get a newer one.
 */
export const changeAccessAs = <T>(needs: Asking, caller: ApiKey, change: (caller: ApiKey) => Promise<T>): Promise<T> =>
  changeAs(needs, caller, async (present) => {
    if (needs.registry.keyById(present.id)?.hash !== present.hash)
      throw unauthorized("This key was rotated: users and keys are changed with its new text.");
    return change(present);
  });
