import { limits } from "../../limits/index.js";
import type { Needs } from "../needs.js";

/**
 * A link that opens the dashboard without asking for a key, once and within an hour: the first start on loopback prints
 * it, so that a person need not look for the key before seeing anything.
 */
export class SignInLink {
  readonly token: string;
  readonly #needs: Needs<"vault" | "clock">;
  readonly #hash: string;
  readonly #until: number;
  #key: string | undefined;

  constructor(needs: Needs<"vault" | "clock" | "ids">, key: string) {
    this.#needs = needs;
    this.token = needs.ids.secret(limits.signInTokenBytes);
    this.#hash = needs.vault.hashKey(this.token);
    this.#until = needs.clock.now() + limits.signInLinkMs;
    this.#key = key;
  }

  /** The API key for whoever has the link's token; undefined if it was used already, has ended, or is another token. */
  redeem(token: string): string | undefined {
    const { vault, clock } = this.#needs;
    if (this.#key === undefined || clock.now() >= this.#until || !vault.equal(vault.hashKey(token), this.#hash))
      return undefined;
    const key = this.#key;
    this.#key = undefined;
    return key;
  }
}
