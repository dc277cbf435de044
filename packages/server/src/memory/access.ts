import type { ApiKey } from "../domain/access/key.js";
import type { KeyStore, User } from "../store/index.js";
import type { Writes } from "./writes.js";

/** Keys and users, all of them in memory. */
export class Access {
  readonly #store: KeyStore;
  readonly #writes: Writes;
  #keys: ReadonlyMap<string, ApiKey> = new Map();
  #users: ReadonlyMap<number, User> = new Map();

  constructor(store: KeyStore, writes: Writes) {
    this.#store = store;
    this.#writes = writes;
  }

  key = (hash: string): ApiKey | undefined => this.#keys.get(hash);
  user = (no: number): User | undefined => this.#users.get(no);

  /** Reads all of them, unless both tables still have this revision; returns a function that applies what was read. */
  async read(revision?: string): Promise<() => void> {
    if (this.#writes.isCurrent(this, revision)) return () => {};
    const [keys, users] = [await this.#store.keys(), await this.#store.users()];
    return () => {
      this.#keys = new Map(keys.map((key) => [key.hash, key]));
      this.#users = new Map(users.map((user) => [user.no, user]));
      this.#writes.wasRead(this, revision);
    };
  }
}
