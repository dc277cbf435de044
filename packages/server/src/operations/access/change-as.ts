import type { ApiKey } from "../../domain/access/key.js";
import { unauthorized } from "../../errors.js";
import type { Needs } from "../needs.js";
import { presentCaller } from "./authenticate.js";

type Asking = Needs<"registry" | "clock">;

/**
 * Makes a caller's change after all earlier changes, across all servers, with the rights that the caller's key has by
 * then: its request may have been admitted minutes ago. Throws a refusal if the key has ended or may no longer change
 * resources.
 */
export const changeAs = <T>(needs: Asking, caller: ApiKey, change: (caller: ApiKey) => Promise<T>): Promise<T> =>
  needs.registry.exclusively(async () => change(presentCaller(needs, caller, true)));

/**
 * Like {@link changeAs}, for users, keys and their secrets. Refuses the old text of a rotated key: a holder of only the
 * old text must not be able to obtain a newer one.
 */
export const changeAccessAs = <T>(needs: Asking, caller: ApiKey, change: (caller: ApiKey) => Promise<T>): Promise<T> =>
  changeAs(needs, caller, async (present) => {
    if (needs.registry.keyById(present.id)?.hash !== present.hash)
      throw unauthorized("This key was rotated: use its new text to change users and keys.");
    return change(present);
  });
