import type { Stock } from "../domain/hosts/host.js";

/**
 * The contract of an inventory: this machine's resources now. Reading never rejects: the result says what could not be
 * found out.
 */
export interface Inventory {
  read(): Promise<Stock>;
}
