import { noPrices, type Prices } from "../domain/usage/price.js";
import type { UsageStore } from "../store/index.js";

/** The prices, as last read: another server's change of them is seen within a minute. */
export class PriceList {
  readonly #store: Pick<UsageStore, "prices" | "savePrices">;
  #prices: Prices = noPrices;

  constructor(store: Pick<UsageStore, "prices" | "savePrices">) {
    this.#store = store;
  }

  get now(): Prices {
    return this.#prices;
  }

  async read(): Promise<Prices> {
    this.#prices = await this.#store.prices();
    return this.#prices;
  }

  async save(prices: Prices): Promise<void> {
    await this.#store.savePrices(prices);
    this.#prices = prices;
  }
}
