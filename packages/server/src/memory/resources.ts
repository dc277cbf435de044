import type { Writes } from "./writes.js";

interface Resource {
  readonly no: number;
  readonly id: string;
  readonly ownerNo: number;
}

interface Store<T> {
  all(): Promise<T[]>;
  some(nos: readonly number[]): Promise<T[]>;
}

/** Resources of one kind, all of them in memory by id. Writes go through to the store. */
export class Resources<T extends Resource> {
  readonly #writes: Writes;
  readonly #store: () => Store<T>;
  readonly #byId = new Map<string, T>();

  constructor(writes: Writes, store: () => Store<T>) {
    this.#writes = writes;
    this.#store = store;
  }

  get = (id: string): T | undefined => this.#byId.get(id);
  all = (): T[] => [...this.#byId.values()];

  /** Stores a resource, then keeps it. */
  put(store: () => Promise<T>): Promise<T> {
    return this.#writes.during(this, async () => {
      const resource = await store();
      this.#byId.set(resource.id, resource);
      return resource;
    });
  }

  /** Gives all of a user's resources to another user, after `store` has done so. */
  give(fromNo: number, toNo: number, store: () => Promise<void>): Promise<void> {
    return this.#writes.during(this, async () => {
      await store();
      for (const each of this.all()) if (each.ownerNo === fromNo) this.#byId.set(each.id, { ...each, ownerNo: toNo });
    });
  }

  remove({ id }: T, store: () => Promise<void>): Promise<void> {
    return this.#writes.during(this, async () => {
      await store();
      this.#byId.delete(id);
    });
  }

  /** Reads those that were changed; returns a function that applies what was read. */
  async read(turn: number): Promise<() => void> {
    const unread = this.#writes.unread(this);
    if (unread === undefined) return () => {};
    const read = unread === "all" ? await this.#store().all() : await this.#store().some([...unread]);
    return () => {
      if (this.#writes.isNewer(this, turn)) return;
      for (const { no, id } of this.all()) if (unread === "all" || unread.has(no)) this.#byId.delete(id);
      for (const resource of read) this.#byId.set(resource.id, resource);
      this.#writes.wasRead(this, unread);
    };
  }
}
