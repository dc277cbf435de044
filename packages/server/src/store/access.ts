import type { ApiKey } from "../domain/access/key.js";
import type { User } from "../domain/access/user.js";

/** A key as it is stored. `isAdmin` is a field of its owner. */
export type NewKey = Omit<ApiKey, "no" | "isAdmin">;

export interface AccessStore {
  /** All users by number: the first is the admin of the first start. */
  users(): Promise<User[]>;
  createUser(user: Omit<User, "no">): Promise<User>;
  /** Replaces a user's fields except the id and number. */
  saveUser(user: User): Promise<void>;
  /** Gives the endpoints, templates, volumes and registry auths of a user to another user, in one commit. */
  giveAll(fromNo: number, toNo: number): Promise<void>;
  /** Marks a user as deleted, and deletes its keys. */
  removeUser(no: number, deletedAt: number): Promise<void>;
  /** Deletes the rows of users that were deleted before a time. */
  forgetUsers(deletedBefore: number): Promise<void>;
  keys(): Promise<ApiKey[]>;
  /** The existing keys with these numbers. */
  someKeys(nos: readonly number[]): Promise<ApiKey[]>;
  /** Of these hashes, returns the hashes of keys' present or old secrets. */
  existing(hashes: readonly string[]): Promise<string[]>;
  /** Adds a key; a bootstrap key replaces the previous one. */
  createKey(key: NewKey): Promise<ApiKey>;
  /** Replaces a key's fields except the id, number and owner. */
  saveKey(key: ApiKey): Promise<void>;
  removeKey(no: number): Promise<void>;
  /** The hash of the last bootstrap key that the environment set; undefined if none did. */
  environmentKey(): Promise<string | undefined>;
  setEnvironmentKey(hash: string): Promise<void>;
  /** When keys were last used, by their numbers; a later time is never replaced by an earlier one. */
  noteUses(uses: ReadonlyMap<number, number>): Promise<void>;
  lastUses(keyNos: readonly number[]): Promise<ReadonlyMap<number, number>>;
}
