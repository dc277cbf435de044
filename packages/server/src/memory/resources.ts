import type { Writes } from "./writes.js";

interface Resource {
  readonly no: number;
  readonly id: string;
  readonly ownerNo: number;
}

/** Resources of one kind, all of them in memory by id. Writes go through to the store. */
export class Resources<T extends Resource> {
  readonly #writes: Writes;
  readonly #readAll: () => Promise<T[]>;
  #byId = new Map<string, T>();

  constructor(writes: Writes, readAll: () => Promise<T[]>) {
    this.#writes = writes;
    this.#readAll = readAll;
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

  /** Reads all of them, unless the table still has this revision; returns a function that applies what was read. */
  async read(turn: number, revision?: string): Promise<() => void> {
    const read = this.#writes.isCurrent(this, revision) ? undefined : await this.#readAll();
    return () => {
      if (!read || this.#writes.isNewer(this, turn)) return;
      this.#byId = new Map(read.map((resource) => [resource.id, resource]));
      this.#writes.wasRead(this, revision);
    };
  }
}
