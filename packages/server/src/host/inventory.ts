import type { Stock } from "../domain/hosts/host.js";

/**
 * The contract of an inventory: what this machine has now. It never rejects: anything it could not find out is part of
 * the result.
 */
export interface Inventory {
  read(): Promise<Stock>;
}
