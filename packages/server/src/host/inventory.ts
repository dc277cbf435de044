import type { Stock } from "../domain/hosts/host.js";

/** The contract: what this machine has now. It never rejects: what could not be told is part of the answer. */
export interface Inventory {
  read(): Promise<Stock>;
}
