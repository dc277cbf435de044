import { PlainSignal } from "../clock.js";
import type { ApiKey } from "../domain/access/key.js";
import {
  type Endpoint,
  type EndpointSettings,
  servingVersion,
  settingsOfDeleted,
} from "../domain/endpoints/endpoint.js";
import type { RegistryAuth } from "../domain/endpoints/registry-auth.js";
import type { Release } from "../domain/endpoints/release.js";
import type { Template } from "../domain/endpoints/template.js";
import type { Volume } from "../domain/endpoints/volume.js";
import { weightOf } from "../domain/endpoints/weight.js";
import { isFrozen, type Worker } from "../domain/workers/worker.js";
import { changed, holds, type WorkerChange } from "../domain/workers/worker-life.js";
import { limits } from "../limits/index.js";
import type { Host, NewRelease, Place, Sign, StartNote, Stores, User } from "../store/index.js";
import { type LiveWorker, LiveWorkers } from "./live-workers.js";
import { Misses, type Sought } from "./misses.js";

export type { LiveWorker } from "./live-workers.js";

export interface RegistryOptions {
  /** Called when something was written that other servers hold in memory, too. */
  readonly onChange?: () => void;
  readonly now?: () => number;
}

/** The stored row, but `lastDoneAt` from memory: only a worker's first result is stored. */
const asStored = ({ lastDoneAt }: Worker, stored: Worker): Worker => ({
  ...stored,
  lastDoneAt: lastDoneAt ?? stored.lastDoneAt,
});

/**
 * Holds in memory what every request needs: keys, endpoints, templates, volumes and workers. Writes go through to the
 * store.
 */
export class Registry {
  readonly #stores: Stores;
  readonly #keys = new Map<string, ApiKey>();
  readonly #users = new Map<number, User>();
  readonly #endpoints = new Map<number, Endpoint>();
  readonly #endpointNos = new Map<string, number>();
  readonly #templates = new Map<string, Template>();
  readonly #volumes = new Map<string, Volume>();
  readonly #registryAuths = new Map<string, RegistryAuth>();
  readonly #workers = new LiveWorkers();
  /** The most jobs held or asked for, by endpoint and version. */
  readonly #slots = new Map<number, Map<number, number>>();
  readonly #forgetting = new Set<(endpointNo: number) => void>();
  readonly #options: RegistryOptions;
  #lastChange: Promise<unknown> = Promise.resolve();
  #hosts: readonly Host[] = [];
  #listeningAt = 0;
  /** Counts writes and reads: a read that began before a write must not overwrite it. */
  #turns = 0;
  /**
   * The change mark of the last read of workers, from which the next one goes on, and when all of them were last read.
   */
  #mark: string | undefined;
  #allReadAt = 0;
  /** By worker, the last change of its row under way. */
  readonly #changing = new WeakMap<LiveWorker, Promise<boolean>>();
  /** Workers with a refused change whose effect may still be in memory. */
  readonly #refused = new WeakSet<LiveWorker>();
  readonly #writes = new Map<object, { onTheWay: number; lastTurn: number }>();
  #reading: Promise<void> | undefined;
  #next: Promise<void> | undefined;
  readonly #misses: Misses;

  constructor(stores: Stores, options: RegistryOptions = {}) {
    this.#stores = stores;
    this.#options = options;
    this.#misses = new Misses(stores, () => this.refresh());
  }

  /** Reads everything; every worker counts as heard of at `now`. */
  async load(now: number): Promise<void> {
    await this.reloadKeys();
    for (const endpoint of await this.#stores.endpoints.all()) this.#put(endpoint);
    for (const template of await this.#stores.templates.all()) this.#templates.set(template.id, template);
    for (const { settings } of [...this.endpoints(), ...this.templates()]) weightOf(settings); // computed now, not by the first save
    for (const volume of await this.#stores.volumes.all()) this.#volumes.set(volume.id, volume);
    for (const auth of await this.#stores.registryAuths.all()) this.#registryAuths.set(auth.id, auth);
    for (const row of await this.#stores.workers.all(now - limits.workerRowKeptMs)) this.#workers.admit(row, now);
  }

  /** Whether other servers may change what is in memory here. */
  get isShared(): boolean {
    return this.#stores.shared !== undefined;
  }

  /** Hosts that run workers, including this one; empty if there is one server. */
  get hosts(): readonly Host[] {
    return this.#hosts;
  }
  set hosts(hosts: readonly Host[]) {
    this.#hosts = hosts;
  }

  /** Finds something in memory. If it is missing, looks once in the store, where another server may have put it. */
  async known<T>(kind: Sought, id: string, find: () => T | undefined): Promise<T | undefined> {
    const found = find();
    if (found !== undefined || !this.isShared) return found;
    await this.#misses.look(kind, id);
    return find();
  }

  /** Reads again what other servers may have changed; resolves when a read that began after this call is done. */
  refresh(): Promise<void> {
    if (!this.#reading) {
      this.#reading = this.#readAll(this.#options.now?.() ?? 0).finally(() => {
        this.#reading = undefined;
      });
      return this.#reading;
    }
    this.#next ??= this.#reading
      .catch(() => {})
      .then(() => {
        this.#next = undefined;
        return this.refresh();
      });
    return this.#next;
  }

  async #readAll(now: number): Promise<void> {
    const begun = ++this.#turns;
    const { shared } = this.#stores;
    const before = { endpoints: this.endpoints(), workers: this.liveWorkers() };
    const since = now < this.#allReadAt + limits.allWorkersReadMs ? this.#mark : undefined;
    const endedSince = now - limits.endedWorkersReadMs;
    // taken before the read: what is written meanwhile is read again next time
    const mark = await shared?.mark();
    const isOurs = (kept: object) => {
      const writes = this.#writes.get(kept);
      return writes !== undefined && (writes.onTheWay > 0 || writes.lastTurn >= begun);
    };
    const [endpoints, templates, volumes, registryAuths, rows] = await Promise.all([
      this.#stores.endpoints.all(),
      this.#stores.templates.all(),
      this.#stores.volumes.all(),
      this.#stores.registryAuths.all(),
      shared && since !== undefined ? shared.workersSince(since, endedSince) : this.#stores.workers.all(endedSince),
      this.reloadKeys(),
    ]);
    for (const endpoint of endpoints) {
      if (!isOurs(this.#endpoints) || !this.#endpoints.has(endpoint.no)) this.#put(endpoint);
    }
    if (!isOurs(this.#endpoints)) this.#missDeleted(before.endpoints, endpoints, now);
    if (!isOurs(this.#templates)) replace(this.#templates, templates);
    if (!isOurs(this.#volumes)) replace(this.#volumes, volumes);
    if (!isOurs(this.#registryAuths)) replace(this.#registryAuths, registryAuths);
    let isComplete = true;
    for (const row of rows) {
      const live = this.#workers.byNo(row.no);
      if (!live) this.#workers.admit(row, now);
      else if (!isOurs(live)) live.row = row;
      else isComplete = false; // another server's change beside ours has yet to be read
      this.#hear(row);
    }
    if (since === undefined) {
      const left = before.workers.filter((live) => !isOurs(live));
      this.#missEnded(left, rows, now);
      this.#allReadAt = now;
    }
    if (isComplete) this.#mark = mark;
    for (const kept of [...this.#writes.keys()]) if (!isOurs(kept)) this.#writes.delete(kept);
  }

  /**
   * Marks endpoints as deleted that were no longer read: a deleted endpoint with nothing left to do is not read any
   * more.
   */
  #missDeleted(before: readonly Endpoint[], read: readonly Endpoint[], now: number): void {
    const there = new Set(read.map(({ no }) => no));
    for (const { no } of before) {
      const endpoint = this.#endpoints.get(no);
      if (!there.has(no) && endpoint && endpoint.deletedAt === undefined) this.#putDeleted(endpoint, now);
    }
  }

  /** Marks workers as ended that were no longer read: they ended while we did not look, too long ago to be read. */
  #missEnded(before: readonly LiveWorker[], read: readonly Worker[], now: number): void {
    const there = new Set(read.map(({ no }) => no));
    for (const live of before) {
      if (there.has(live.row.no) || live.row.endedAt !== undefined) continue;
      live.row = { ...live.row, wanted: "stopped", endedAt: now };
      live.dismissed.abort();
    }
  }

  /** Takes in what other servers have heard of a worker. */
  #hear(row: Worker): void {
    const live = this.#workers.byNo(row.no) as LiveWorker;
    live.seenAt = Math.max(live.seenAt, row.seenAt);
    live.busyAt = Math.max(live.busyAt, row.busyAt);
    live.polledAt = Math.max(live.polledAt, row.polledAt);
    this.noteSlots(row.endpointNo, row.version, row.slots);
    // decided from the row in memory: the row just read may be older than our own last change
    const { askedAt, endedAt, wanted } = live.row;
    if (askedAt !== undefined || endedAt !== undefined || isFrozen(live.row)) live.dismissed.abort();
    else if (live.dismissed.aborted && wanted === "running") live.dismissed = new PlainSignal();
  }

  /**
   * Restarts every worker's silence, because we did not listen. `ownHostNo`: except for that host's workers, which
   * talked to us.
   */
  hearAll(now: number, ownHostNo?: number): void {
    this.#listeningAt = now;
    for (const worker of this.liveWorkers()) {
      if (worker.row.hostNo !== ownHostNo) worker.seenAt = worker.polledAt = now;
    }
  }

  /** Since when a host has been silent while we listened; undefined for this host or if unknown. */
  hostSilentAt(hostNo: number): number | undefined {
    const host = this.#hosts.find(({ no }) => no === hostNo);
    return host && Math.max(host.seenAt, this.#listeningAt);
  }

  /** What this server has heard of live workers since `since`, for the other servers. */
  signs(since: number): Sign[] {
    // polls are reported when they come and end, which suffices: a worker counts as idle only long after
    return this.liveWorkers()
      .filter((worker) => Math.max(worker.seenAt, worker.busyAt, worker.polledAt) >= since)
      .map(({ row, seenAt, busyAt, polledAt }) => ({
        workerNo: row.no,
        seenAt,
        busyAt,
        polledAt,
        slots: this.#slots.get(row.endpointNo)?.get(row.version) ?? 1,
      }));
  }

  /** Protects what we write from being overwritten by reads that began before the write was over. */
  async #written<T>(kept: object, write: () => Promise<T>): Promise<T> {
    if (!this.isShared) return write();
    const writes = this.#writes.get(kept) ?? { onTheWay: 0, lastTurn: 0 };
    this.#writes.set(kept, writes);
    writes.onTheWay++;
    try {
      return await write();
    } finally {
      writes.onTheWay--;
      writes.lastTurn = ++this.#turns;
      this.#options.onChange?.();
    }
  }

  async reloadKeys(): Promise<void> {
    const [keys, users] = [await this.#stores.keys.keys(), await this.#stores.keys.users()];
    this.#keys.clear();
    this.#users.clear();
    for (const key of keys) this.#keys.set(key.hash, key);
    for (const user of users) this.#users.set(user.no, user);
  }

  key = (hash: string): ApiKey | undefined => this.#keys.get(hash);
  user = (no: number): User | undefined => this.#users.get(no);

  /** Runs changes of resources one after the other, across all servers: each sees what the one before has written. */
  exclusively<T>(change: () => Promise<T>): Promise<T> {
    const { shared } = this.#stores;
    const run = () =>
      shared
        ? shared.exclusively(async () => {
            await this.refresh();
            return change();
          })
        : change();
    const next = this.#lastChange.then(run);
    this.#lastChange = next.catch(() => {});
    return next;
  }

  // endpoints

  endpoint(id: string): Endpoint | undefined {
    const no = this.#endpointNos.get(id);
    return no === undefined ? undefined : this.#endpoints.get(no);
  }
  endpointByNo = (no: number): Endpoint | undefined => this.#endpoints.get(no);
  endpoints = (): Endpoint[] => [...this.#endpoints.values()];

  async createEndpoint(made: Parameters<Stores["endpoints"]["create"]>[0]): Promise<Endpoint> {
    return this.#written(this.#endpoints, async () => this.#put(await this.#stores.endpoints.create(made)));
  }
  async saveEndpoint(
    endpoint: Endpoint,
    settings: EndpointSettings,
    release: NewRelease | undefined,
  ): Promise<Endpoint> {
    await this.#written(this.#endpoints, () => this.#stores.endpoints.save(endpoint.no, settings, release));
    const now = this.#endpoints.get(endpoint.no) ?? endpoint;
    const version = now.version + (release ? 1 : 0);
    const fresh = { failedStarts: 0, failedAt: undefined, verdict: undefined, heldVersion: undefined };
    return this.#put({ ...now, settings, version, ...fresh });
  }
  async removeEndpoint(endpoint: Endpoint, now: number): Promise<void> {
    await this.#written(this.#endpoints, () => this.#stores.endpoints.remove(endpoint.no, now));
    this.#putDeleted(this.#endpoints.get(endpoint.no) ?? endpoint, now);
  }
  /** Calls `listener` for each endpoint that is forgotten, so that other memory kept for it is freed. */
  onForget(listener: (endpointNo: number) => void): void {
    this.#forgetting.add(listener);
  }
  #forgetEndpoints(deletedBefore: number): void {
    for (const { no, id, deletedAt } of this.#endpoints.values()) {
      if (deletedAt === undefined || deletedAt > deletedBefore || this.workersOf(no).length > 0) continue;
      this.#endpoints.delete(no);
      this.#endpointNos.delete(id);
      this.#slots.delete(no);
      for (const listener of this.#forgetting) listener(no);
    }
  }
  /**
   * Records how the start of a worker of this version went, for the endpoint as it was then. Three failures hold a
   * version that never started well.
   */
  async noteStart({ no, version: present, provenVersion }: Endpoint, version: number, said: StartNote): Promise<void> {
    const { failedStarts, at, verdict } = said;
    const isUp = failedStarts === 0;
    const isHeld = failedStarts >= limits.crashLoopStarts && provenVersion > 0 && version > provenVersion;
    const endpoint = this.#endpoints.get(no);
    if (endpoint?.version !== present) return;
    this.#put({
      ...endpoint,
      failedStarts: isHeld ? 0 : failedStarts,
      failedAt: isUp || isHeld ? undefined : at,
      verdict,
      provenVersion: isUp ? Math.max(version, endpoint.provenVersion) : endpoint.provenVersion,
      heldVersion: isHeld ? version : endpoint.heldVersion,
    });
    await this.#written(this.#endpoints, () =>
      this.#stores.endpoints.noteStart(no, { present, tried: version, failedStarts, at, verdict, isHeld }),
    );
  }
  /** A version of an endpoint, if it is still kept. */
  release = (no: number, n: number): Promise<Release | undefined> => this.#stores.endpoints.release(no, n);
  /** The most jobs that a worker of the serving version has held or asked for; 1 until known. */
  slots = (endpoint: Endpoint): number => this.#slots.get(endpoint.no)?.get(servingVersion(endpoint)) ?? 1;
  noteSlots(endpointNo: number, version: number, slots: number): void {
    const known = this.#slots.get(endpointNo) ?? new Map<number, number>();
    if (slots <= (known.get(version) ?? 1)) return;
    this.#slots.set(endpointNo, known.set(version, slots));
  }

  // templates, volumes and credentials

  template = (id: string): Template | undefined => this.#templates.get(id);
  templates = (): Template[] => [...this.#templates.values()];
  createTemplate = (made: Parameters<Stores["templates"]["create"]>[0]): Promise<Template> =>
    this.#putIn(this.#templates, () => this.#stores.templates.create(made));
  saveTemplate = (template: Template, settings: Template["settings"]): Promise<Template> =>
    this.#putIn(this.#templates, async () => {
      await this.#stores.templates.save(template.no, settings);
      return { ...template, settings };
    });
  removeTemplate = (template: Template): Promise<void> =>
    this.#takeFrom(this.#templates, template, () => this.#stores.templates.remove(template.no));

  volume = (id: string): Volume | undefined => this.#volumes.get(id);
  volumes = (): Volume[] => [...this.#volumes.values()];
  createVolume = (made: Omit<Volume, "no">): Promise<Volume> =>
    this.#putIn(this.#volumes, () => this.#stores.volumes.create(made));
  saveVolume = (volume: Volume): Promise<Volume> =>
    this.#putIn(this.#volumes, () => this.#stores.volumes.save(volume).then(() => volume));
  removeVolume = (volume: Volume): Promise<void> =>
    this.#takeFrom(this.#volumes, volume, () => this.#stores.volumes.remove(volume.no));

  registryAuth = (id: string): RegistryAuth | undefined => this.#registryAuths.get(id);
  registryAuths = (): RegistryAuth[] => [...this.#registryAuths.values()];
  createRegistryAuth = (made: Omit<RegistryAuth, "no">): Promise<RegistryAuth> =>
    this.#putIn(this.#registryAuths, () => this.#stores.registryAuths.create(made));
  saveRegistryAuth = (auth: RegistryAuth): Promise<RegistryAuth> =>
    this.#putIn(this.#registryAuths, () => this.#stores.registryAuths.save(auth).then(() => auth));
  removeRegistryAuth = (auth: RegistryAuth): Promise<void> =>
    this.#takeFrom(this.#registryAuths, auth, () => this.#stores.registryAuths.remove(auth.no));

  /** Writes a resource, then keeps it in memory. */
  #putIn<T extends { readonly id: string }>(kept: Map<string, T>, write: () => Promise<T>): Promise<T> {
    return this.#written(kept, async () => {
      const resource = await write();
      kept.set(resource.id, resource);
      return resource;
    });
  }
  #takeFrom<T extends { readonly id: string }>(kept: Map<string, T>, { id }: T, write: () => Promise<void>) {
    return this.#written(kept, async () => {
      await write();
      kept.delete(id);
    });
  }

  // workers

  worker = (id: string): LiveWorker | undefined => this.#workers.byId(id);
  workerByNo = (no: number): LiveWorker | undefined => this.#workers.byNo(no);
  /** Workers that have not ended. */
  liveWorkers = (): LiveWorker[] => this.#workers.live();
  endedWorkers = (): LiveWorker[] => this.#workers.ended();
  workersOf = (endpointNo: number): LiveWorker[] => this.#workers.of(endpointNo);

  async createWorker(made: Parameters<Stores["workers"]["create"]>[0]): Promise<LiveWorker> {
    const row = await this.#stores.workers.create(made);
    this.#options.onChange?.();
    const live = this.#workers.byNo(row.no) ?? this.#workers.admit(row, made.createdAt);
    // a read under way has not seen it
    if (this.isShared) this.#writes.set(live, { onTheWay: 0, lastTurn: ++this.#turns });
    return live;
  }
  /**
   * Changes a worker's row, in memory at once, so that it gets no more jobs meanwhile. False if the table of a worker's life
   * does not allow it, because another server changed the row first; then memory holds that server's row.
   */
  async changeWorker(worker: LiveWorker, change: WorkerChange): Promise<boolean> {
    const { no, id } = worker.row;
    worker.row = changed(worker.row, change);
    const isLast = () => this.#changing.get(worker) === saved;
    const save = async () => {
      const isMade = await this.#stores.workers.change(no, change);
      if (isMade && !(isLast() && this.#refused.has(worker))) return true;
      const stored = await this.#stores.workers.find(id);
      const isMadeBefore = stored !== undefined && holds(stored, change); // its connection broke, and it was sent twice
      if (!isMade && !isMadeBefore) this.#refused.add(worker);
      // with another change pending, that one reloads the row
      if (stored && isLast() && this.#refused.delete(worker)) worker.row = asStored(worker.row, stored);
      return isMade || isMadeBefore;
    };
    // one after the other: a change was decided from the row that the one before makes
    const before = this.#changing.get(worker);
    const saved: Promise<boolean> = this.#written(worker, () => (before ? before.then(save, save) : save()));
    this.#changing.set(worker, saved);
    try {
      return await saved;
    } finally {
      if (isLast()) this.#changing.delete(worker);
    }
  }
  /** Gives a waiting worker its place. False if it no longer waits, or another server runs the scaler. */
  async placeWorker(worker: LiveWorker, found: Place): Promise<boolean> {
    return this.#written(worker, async () => {
      const isPlaced = await this.#stores.workers.place(worker.row.no, found);
      if (isPlaced) worker.row = { ...worker.row, ...found };
      return isPlaced;
    });
  }
  /** An endpoint's workers including ended ones, newest first. */
  workersListed = (endpointNo: number, limit: number): Promise<Worker[]> =>
    this.#stores.workers.ofEndpoint(endpointNo, limit);
  /** A worker's row, even if the worker ended long ago. */
  workerListed = (id: string): Promise<Worker | undefined> => this.#stores.workers.find(id);
  /** Deletes the rows of workers that ended long ago. */
  async forgetWorkers(endedBefore: number): Promise<void> {
    this.#workers.forget(endedBefore);
    await this.#stores.workers.forget(endedBefore);
  }
  /**
   * Forgets workers that ended, and endpoints that were deleted, before a time, once their workers have ended. Affects
   * memory only.
   */
  forgetEnded(before: number): void {
    this.#workers.forget(before);
    this.#forgetEndpoints(before);
  }
  /** How many entries memory has for endpoints and workers. */
  get size(): number {
    const slots = [...this.#slots.values()].reduce((sum, { size }) => sum + size, 0);
    return this.#endpoints.size + this.#endpointNos.size + this.#workers.size + slots + this.#writes.size;
  }

  #putDeleted(endpoint: Endpoint, deletedAt: number): void {
    this.#put({ ...endpoint, settings: settingsOfDeleted(endpoint.settings), deletedAt });
  }

  #put(endpoint: Endpoint): Endpoint {
    this.#endpoints.set(endpoint.no, endpoint);
    this.#endpointNos.set(endpoint.id, endpoint.no);
    return endpoint;
  }
}

/** Replaces everything kept by what was read. */
function replace<T extends { readonly id: string }>(kept: Map<string, T>, read: readonly T[]): void {
  kept.clear();
  for (const each of read) kept.set(each.id, each);
}
