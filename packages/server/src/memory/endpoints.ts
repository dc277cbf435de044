import {
  type Endpoint,
  type EndpointSettings,
  servingVersion,
  settingsOfDeleted,
} from "../domain/endpoints/endpoint.js";
import { isPod, type Pod } from "../domain/pods/pod.js";
import { limits } from "../limits/index.js";
import type { EndpointStore, NewRelease, StartNote } from "../store/index.js";
import type { Writes } from "./writes.js";

/**
 * Endpoints in memory, by number and id: all that are not deleted, and deleted ones until they are forgotten. Writes go
 * through to the store.
 */
export class Endpoints {
  readonly #store: EndpointStore;
  readonly #writes: Writes;
  readonly #byNo = new Map<number, Endpoint>();
  readonly #nos = new Map<string, number>();
  /** The most jobs held or asked for, by endpoint and version. */
  readonly #slots = new Map<number, Map<number, number>>();
  readonly #forgetting = new Set<(endpointNo: number, id: string) => void>();

  constructor(store: EndpointStore, writes: Writes) {
    this.#store = store;
    this.#writes = writes;
  }

  /** How many entries there are. */
  get size(): number {
    const slots = [...this.#slots.values()].reduce((sum, { size }) => sum + size, 0);
    return this.#byNo.size + this.#nos.size + slots;
  }

  /** An endpoint that takes requests. */
  byId(id: string): Endpoint | undefined {
    const found = this.#found(id);
    return found?.settings.type === "POD" ? undefined : found;
  }
  pod(id: string): Pod | undefined {
    const found = this.#found(id);
    return isPod(found) ? found : undefined;
  }
  byNo = (no: number): Endpoint | undefined => this.#byNo.get(no);
  all = (): Endpoint[] => [...this.#byNo.values()];

  async create(made: Parameters<EndpointStore["create"]>[0]): Promise<Endpoint> {
    return this.#writes.during(this, async () => this.#put(await this.#store.create(made)));
  }

  async save(endpoint: Endpoint, settings: EndpointSettings, release: NewRelease | undefined): Promise<Endpoint> {
    await this.#writes.during(this, () => this.#store.save(endpoint.no, settings, release));
    const now = this.#byNo.get(endpoint.no) ?? endpoint;
    const version = now.version + (release ? 1 : 0);
    const fresh = { failedStarts: 0, failedAt: undefined, verdict: undefined, heldVersion: undefined };
    return this.#put({ ...now, settings, version, ...fresh });
  }

  /** Gives all of a user's endpoints to another user, after `store` has done so. */
  give(fromNo: number, toNo: number, store: () => Promise<void>): Promise<void> {
    return this.#writes.during(this, async () => {
      await store();
      for (const each of this.all()) if (each.ownerNo === fromNo) this.#put({ ...each, ownerNo: toNo });
    });
  }

  async remove(endpoint: Endpoint, now: number): Promise<void> {
    await this.#writes.during(this, () => this.#store.remove(endpoint.no, now));
    this.#putDeleted(this.#byNo.get(endpoint.no) ?? endpoint, now);
  }

  /**
   * Records how the start of a worker of this version went, for the endpoint as it was then. Three failures hold a
   * version that never started well, if an earlier one may serve instead.
   */
  async noteStart({ no, version: present, provenVersion }: Endpoint, version: number, said: StartNote): Promise<void> {
    const { failedStarts, at, verdict } = said;
    const isUp = failedStarts === 0;
    const endpoint = this.#byNo.get(no);
    if (endpoint?.version !== present) return;
    const isBad = failedStarts >= limits.crashLoopStarts && provenVersion > 0 && version > provenVersion;
    const isHeld = isBad && said.isAlone !== true && !isPod(endpoint); // a pod is what its user saved last
    this.#put({
      ...endpoint,
      failedStarts: isHeld ? 0 : failedStarts,
      failedAt: isUp || isHeld ? undefined : at,
      verdict,
      provenVersion: isUp ? Math.max(version, endpoint.provenVersion) : endpoint.provenVersion,
      heldVersion: isHeld ? version : endpoint.heldVersion,
    });
    const note = { present, tried: version, failedStarts, at, verdict, isHeld };
    await this.#writes.during(this, () => this.#store.noteStart(no, note));
  }

  /** The most jobs that a worker of the serving version has held or asked for; 1 until known. */
  slots = (endpoint: Endpoint): number => this.#slots.get(endpoint.no)?.get(servingVersion(endpoint)) ?? 1;
  slotsOf = (endpointNo: number, version: number): number => this.#slots.get(endpointNo)?.get(version) ?? 1;
  noteSlots(endpointNo: number, version: number, slots: number): void {
    const known = this.#slots.get(endpointNo) ?? new Map<number, number>();
    if (slots <= (known.get(version) ?? 1)) return;
    this.#slots.set(endpointNo, known.set(version, slots));
  }

  /**
   * Reads changed endpoints; returns a function that applies what was read, and marks endpoints that no longer exist as
   * deleted. A read of all endpoints includes a deleted one only while something is left to do for it.
   */
  async read(turn: number, now: number): Promise<() => void> {
    const unread = this.#writes.unread(this);
    if (unread === undefined) return () => {};
    const before = unread === "all" ? [...this.#byNo.keys()] : [...unread];
    const read = unread === "all" ? await this.#store.all() : await this.#store.some(before);
    return () => {
      const isNewer = this.#writes.isNewer(this, turn);
      for (const endpoint of read) if (!isNewer || !this.#byNo.has(endpoint.no)) this.#put(endpoint);
      if (isNewer) return;
      const there = new Set(read.map(({ no }) => no));
      for (const no of before) {
        const endpoint = this.#byNo.get(no);
        if (!there.has(no) && endpoint && endpoint.deletedAt === undefined) this.#putDeleted(endpoint, now);
      }
      this.#writes.wasRead(this, unread);
    };
  }

  /** Called with each endpoint that is new, changed or deleted, here or on another server. */
  onPut: (endpoint: Endpoint) => void = () => {};

  /** Calls `listener` for each endpoint that is forgotten, so that other memory kept for it is freed. */
  onForget(listener: (endpointNo: number, id: string) => void): void {
    this.#forgetting.add(listener);
  }

  /**
   * Forgets endpoints that were deleted before a time, unless they are in use or something of theirs is left to do, such
   * as a held delivery. Affects memory only.
   */
  async forget(deletedBefore: number, isUsed: (endpointNo: number) => boolean): Promise<void> {
    const old = [...this.#byNo.values()].filter(
      ({ no, deletedAt }) => deletedAt !== undefined && deletedAt <= deletedBefore && !isUsed(no),
    );
    for (let n = 0; n < old.length; n += limits.forgottenAtOnce) {
      const some = old.slice(n, n + limits.forgottenAtOnce);
      const needed = new Set(await this.#store.needed(some.map(({ no }) => no)));
      for (const { no, id } of some) if (!needed.has(no) && !isUsed(no)) this.#forget(no, id);
    }
  }

  #forget(no: number, id: string): void {
    this.#byNo.delete(no);
    this.#nos.delete(id);
    this.#slots.delete(no);
    for (const listener of this.#forgetting) listener(no, id);
  }

  #found(id: string): Endpoint | undefined {
    const no = this.#nos.get(id);
    return no === undefined ? undefined : this.#byNo.get(no);
  }

  #putDeleted(endpoint: Endpoint, deletedAt: number): void {
    this.#put({ ...endpoint, settings: settingsOfDeleted(endpoint.settings), deletedAt });
  }

  #put(endpoint: Endpoint): Endpoint {
    this.#byNo.set(endpoint.no, endpoint);
    this.#nos.set(endpoint.id, endpoint.no);
    this.onPut(endpoint);
    return endpoint;
  }
}
