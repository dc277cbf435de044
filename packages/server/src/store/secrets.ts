import type { Secret } from "../domain/access/secret.js";

export interface SecretStore {
  /** `value` is sealed. */
  create(secret: Omit<Secret, "no"> & { readonly value: string }): Promise<Secret>;
  remove(no: number): Promise<void>;
  /** A user's secrets by name. */
  of(ownerNo: number): Promise<Secret[]>;
  /** The sealed values of a user's secrets with these names. */
  values(ownerNo: number, names: readonly string[]): Promise<ReadonlyMap<string, string>>;
}
