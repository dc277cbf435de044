import type { ApiKey, Scope } from "../domain/access/key.js";

export interface User {
  readonly no: number;
  readonly id: string;
  readonly isAdmin: boolean;
  /** The webhook signing secret, sealed. */
  readonly webhookSecret: string;
}

export interface KeyStore {
  users(): Promise<User[]>;
  createUser(user: Omit<User, "no">): Promise<User>;
  keys(): Promise<ApiKey[]>;
  /** Returns those of these hashes that belong to valid keys. */
  existing(hashes: readonly string[]): Promise<string[]>;
  /** Adds a key; a bootstrap key replaces the previous one. */
  add(key: { hash: string; ownerNo: number; scope: Scope; prefix: string; isBootstrap: boolean }): Promise<void>;
}
