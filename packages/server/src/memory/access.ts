import type { ApiKey } from "../domain/access/key.js";
import type { KeyStore, User } from "../store/index.js";

/** Keys and users, all of them in memory. */
export class Access {
  readonly #store: KeyStore;
  #keys: ReadonlyMap<string, ApiKey> = new Map();
  #users: ReadonlyMap<number, User> = new Map();
  #revision: string | undefined;

  constructor(store: KeyStore) {
    this.#store = store;
  }

  key = (hash: string): ApiKey | undefined => this.#keys.get(hash);
  user = (no: number): User | undefined => this.#users.get(no);

  /** Reads all of them, unless both tables are still of the revision that was read last; returns what takes them in. */
  async read(revision?: string): Promise<() => void> {
    if (revision !== undefined && revision === this.#revision) return () => {};
    const [keys, users] = [await this.#store.keys(), await this.#store.users()];
    return () => {
      this.#keys = new Map(keys.map((key) => [key.hash, key]));
      this.#users = new Map(users.map((user) => [user.no, user]));
      this.#revision = revision;
    };
  }
}
