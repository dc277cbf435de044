import type { ApiKey } from "../domain/access/key.js";
import type { User } from "../domain/access/user.js";
import type { AccessStore, NewKey } from "../store/index.js";
import type { Writes } from "./writes.js";

/** Keys and users, all of them in memory. Writes go through to the store. */
export class Access {
  readonly #store: AccessStore;
  readonly #writes: Writes;
  readonly #keys = new Map<string, ApiKey>();
  /** Keys by the hash of each secret that works. An old secret's entry is the key with that secret's hash and end. */
  #byHash: ReadonlyMap<string, ApiKey> = new Map();
  #users = new Map<number, User>();
  #firstNo = 0;
  /** When keys were used since the last {@link flushUses}, by number. */
  #uses = new Map<number, number>();

  constructor(store: AccessStore, writes: Writes) {
    this.#store = store;
    this.#writes = writes;
  }

  key = (hash: string): ApiKey | undefined => this.#byHash.get(hash);
  keyById = (id: string): ApiKey | undefined => this.#keys.get(id);
  keys = (): ApiKey[] => [...this.#keys.values()];
  user = (no: number): User | undefined => this.#users.get(no);
  /** Users that are not deleted. */
  users = (): User[] => [...this.#users.values()].filter(({ deletedAt }) => deletedAt === undefined);
  /** Whether this is the admin of the first start, who alone may run local processes. */
  isFirstAdmin = (no: number): boolean => no === this.#firstNo;

  createUser(made: Omit<User, "no">): Promise<User> {
    return this.#writes.during(this, async () => this.#putUser(await this.#store.createUser(made)));
  }

  saveUser(user: User): Promise<User> {
    return this.#writes.during(this, async () => {
      await this.#store.saveUser(user);
      for (const key of this.keys())
        if (key.ownerNo === user.no) this.#keys.set(key.id, { ...key, isAdmin: user.isAdmin });
      this.#index();
      return this.#putUser(user);
    });
  }

  removeUser(user: User, deletedAt: number): Promise<void> {
    return this.#writes.during(this, async () => {
      await this.#store.removeUser(user.no, deletedAt);
      for (const { id, ownerNo } of this.keys()) if (ownerNo === user.no) this.#keys.delete(id);
      this.#index();
      this.#putUser({ ...user, deletedAt });
    });
  }

  createKey(made: NewKey): Promise<ApiKey> {
    return this.#writes.during(this, async () => this.#putKey(await this.#store.createKey(made)));
  }

  saveKey(key: ApiKey): Promise<ApiKey> {
    return this.#writes.during(this, async () => {
      await this.#store.saveKey(key);
      return this.#putKey(key);
    });
  }

  removeKey({ no, id }: ApiKey): Promise<void> {
    return this.#writes.during(this, async () => {
      await this.#store.removeKey(no);
      this.#keys.delete(id);
      this.#index();
    });
  }

  noteUse({ no }: ApiKey, now: number): void {
    this.#uses.set(no, now);
  }

  /** Stores when keys were used; if that fails, tries again with the next uses. */
  async flushUses(): Promise<void> {
    const numbers = new Set(this.keys().map(({ no }) => no));
    const uses = new Map([...this.#uses].filter(([no]) => numbers.has(no))); // deleted keys have no uses
    this.#uses = new Map();
    try {
      await this.#store.noteUses(uses);
    } catch (error) {
      this.#uses = new Map([...uses, ...this.#uses]);
      throw error;
    }
  }

  /** When these keys were last used; undefined entries were never used. */
  async lastUses(keys: readonly ApiKey[]): Promise<ReadonlyMap<number, number>> {
    const stored = await this.#store.lastUses(keys.map(({ no }) => no));
    return new Map([...stored, ...this.#uses]);
  }

  /** Forgets users that were deleted before a time. */
  async forgetUsers(deletedBefore: number): Promise<void> {
    const old = [...this.#users.values()].filter(({ deletedAt = deletedBefore }) => deletedAt < deletedBefore);
    if (old.length === 0) return;
    await this.#writes.during(this, () => this.#store.forgetUsers(deletedBefore));
    for (const { no } of old) this.#users.delete(no);
  }

  /** Reads the keys that were changed, or all keys and users; returns a function that applies what was read. */
  async read(turn: number): Promise<() => void> {
    const unread = this.#writes.unread(this);
    if (unread === undefined) return () => {};
    const keys = unread === "all" ? await this.#store.keys() : await this.#store.someKeys([...unread]);
    const users = unread === "all" ? await this.#store.users() : undefined;
    return () => {
      if (this.#writes.isNewer(this, turn)) return;
      for (const { no, id } of this.keys()) if (unread === "all" || unread.has(no)) this.#keys.delete(id);
      for (const key of keys) this.#keys.set(key.id, key);
      if (users) this.#users = new Map(users.map((user) => [user.no, user]));
      if (users) this.#firstNo = Math.min(...this.#users.keys());
      this.#index();
      this.#writes.wasRead(this, unread);
    };
  }

  #putUser(user: User): User {
    this.#users.set(user.no, user);
    this.#firstNo = Math.min(...this.#users.keys());
    return user;
  }

  #putKey(key: ApiKey): ApiKey {
    if (key.isBootstrap) for (const { id, isBootstrap } of this.keys()) if (isBootstrap) this.#keys.delete(id);
    this.#keys.set(key.id, key);
    this.#index();
    return key;
  }

  #index(): void {
    this.#byHash = new Map(this.keys().flatMap(bySecrets));
  }
}

/** A key under the hash of each of its secrets. */
function bySecrets(key: ApiKey): [string, ApiKey][] {
  const { old, expiresAt = Number.POSITIVE_INFINITY } = key;
  const present: [string, ApiKey] = [key.hash, key];
  if (!old) return [present];
  return [
    present,
    [old.hash, { ...key, hash: old.hash, prefix: old.prefix, expiresAt: Math.min(old.until, expiresAt) }],
  ];
}
