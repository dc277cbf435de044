import type { RegistryAuth } from "../domain/endpoints/registry-auth.js";
import type { Release } from "../domain/endpoints/release.js";
import type { Template } from "../domain/endpoints/template.js";
import type { Volume } from "../domain/endpoints/volume.js";
import { weightOf } from "../domain/endpoints/weight.js";
import { FairLine } from "../domain/fair-line.js";
import type { Worker } from "../domain/workers/worker.js";
import { limits } from "../limits/index.js";
import type { Host, Server, Sign, Stores } from "../store/index.js";
import { turns } from "../turns.js";
import { Access } from "./access.js";
import { Cursor } from "./cursor.js";
import { Endpoints } from "./endpoints.js";
import { Misses, type Sought } from "./misses.js";
import { PriceList } from "./prices.js";
import { Resources } from "./resources.js";
import { Workers } from "./workers.js";
import { Writes } from "./writes.js";

export type { LiveWorker } from "./live-workers.js";

export interface RegistryOptions {
  /** Called when something was written that other servers hold in memory, too. */
  readonly onChange?: () => void;
  readonly now?: () => number;
}

/**
 * Holds in memory what every request needs: keys, endpoints, templates, volumes and workers, a cache for each. Writes go
 * through to the store. If servers share a database, each cache is read again when its table has changed.
 */
export class Registry {
  readonly #stores: Stores;
  readonly #options: RegistryOptions;
  readonly #writes: Writes;
  readonly #access: Access;
  readonly #endpoints: Endpoints;
  readonly #templates: Resources<Template>;
  readonly #volumes: Resources<Volume>;
  readonly #registryAuths: Resources<RegistryAuth>;
  readonly #workers: Workers;
  readonly #misses: Misses;
  readonly #cursor: Cursor;
  readonly #changes = new FairLine();
  readonly prices: PriceList;
  /** The hosts that run workers; empty if there is one server, which knows its own. */
  hosts: readonly Host[] = [];
  /** The servers on this database, including this one; empty if there can be no others. */
  servers: readonly Server[] = [];
  #reading: Promise<void> | undefined;
  #next: Promise<void> | undefined;

  constructor(stores: Stores, options: RegistryOptions = {}) {
    this.#stores = stores;
    this.#options = options;
    const writes = new Writes(this.isShared, options.onChange);
    this.#writes = writes;
    this.prices = new PriceList(stores.usage);
    this.#access = new Access(stores.access, writes);
    this.#endpoints = new Endpoints(stores.endpoints, writes);
    this.#templates = new Resources(writes, () => stores.templates);
    this.#volumes = new Resources(writes, () => stores.volumes);
    this.#registryAuths = new Resources(writes, () => stores.registryAuths);
    this.#workers = new Workers(stores, writes);
    this.#cursor = new Cursor(stores.shared, writes, {
      endpoint: this.#endpoints,
      template: this.#templates,
      volume: this.#volumes,
      registry_auth: this.#registryAuths,
      api_key: this.#access,
      user: this.#access,
    });
    this.#misses = new Misses(stores, () => this.refresh());
  }

  /** Reads everything; every worker counts as heard of at `now`. */
  async load(now: number): Promise<void> {
    const turn = this.#writes.beginRead();
    await this.#cursor.look(now);
    (await this.#access.read(turn))();
    (await this.#endpoints.read(turn, now))();
    (await this.#templates.read(turn))();
    for (const { settings } of [...this.endpoints(), ...this.templates()]) weightOf(settings); // computed now, not by the first save
    (await this.#volumes.read(turn))();
    (await this.#registryAuths.read(turn))();
    await this.#workers.load(now);
    await this.prices.read();
  }

  /** Whether other servers may change what is in memory here. */
  get isShared(): boolean {
    return this.#stores.shared !== undefined;
  }

  /** Finds something in memory. If it is missing, looks once in the store, where another server may have put it. */
  async known<T>(kind: Sought, id: string, find: () => T | undefined): Promise<T | undefined> {
    const found = find();
    if (found !== undefined || !this.isShared) return found;
    await this.#misses.look(kind, id);
    return find();
  }

  /** Reads again what other servers have changed; resolves when a read that began after this call is done. */
  refresh(): Promise<void> {
    if (!this.#reading) {
      this.#reading = this.#readChanged(this.#options.now?.() ?? 0).finally(() => {
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

  async #readChanged(now: number): Promise<void> {
    const turn = this.#writes.beginRead();
    const mark = await this.#cursor.look(now); // before anything is read: what is written meanwhile is read next time
    const found = await Promise.all([
      this.#endpoints.read(turn, now),
      this.#templates.read(turn),
      this.#volumes.read(turn),
      this.#registryAuths.read(turn),
      this.#access.read(turn),
      this.#workers.read(turn, now, mark, ({ endpointNo, version, slots }) =>
        this.noteSlots(endpointNo, version, slots),
      ),
    ]);
    // in one turn of the event loop: no request may see a worker without its endpoint
    for (const apply of found) apply();
    this.#writes.endRead(turn);
  }

  /**
   * Restarts every worker's silence, because we did not listen. `tends`: except on the hosts that we tend, whose workers
   * talked to us.
   */
  hearAll = (now: number, tends?: (hostNo: number) => boolean): void => this.#workers.hearAll(now, tends);

  /** Since when a host has been silent while we listened; undefined for this host or if unknown. */
  hostSilentAt(hostNo: number): number | undefined {
    const host = this.hosts.find(({ no }) => no === hostNo);
    return host && Math.max(host.seenAt, this.#workers.listeningAt);
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
        slots: this.#endpoints.slotsOf(row.endpointNo, row.version),
      }));
  }

  /** A key by the hash of a secret, valid or expired. */
  key = (hash: string) => this.#access.key(hash);
  keyById = (id: string) => this.#access.keyById(id);
  keys = () => this.#access.keys();
  createKey = (...made: Parameters<Access["createKey"]>) => this.#access.createKey(...made);
  saveKey = (...saved: Parameters<Access["saveKey"]>) => this.#access.saveKey(...saved);
  removeKey = (...removed: Parameters<Access["removeKey"]>) => this.#access.removeKey(...removed);
  noteUse = (...used: Parameters<Access["noteUse"]>) => this.#access.noteUse(...used);
  flushUses = () => this.#access.flushUses();
  lastUses = (...of: Parameters<Access["lastUses"]>) => this.#access.lastUses(...of);
  user = (no: number) => this.#access.user(no);
  users = () => this.#access.users();
  isFirstAdmin = (no: number) => this.#access.isFirstAdmin(no);
  createUser = (...made: Parameters<Access["createUser"]>) => this.#access.createUser(...made);
  saveUser = (...saved: Parameters<Access["saveUser"]>) => this.#access.saveUser(...saved);
  /** Gives all of a user's resources to another user, in one commit. */
  giveAll(fromNo: number, toNo: number): Promise<void> {
    const caches = [this.#endpoints, this.#templates, this.#volumes, this.#registryAuths];
    const store = () => this.#stores.access.giveAll(fromNo, toNo);
    return caches.reduce((write, cache) => () => cache.give(fromNo, toNo, write), store)();
  }
  removeUser = (...removed: Parameters<Access["removeUser"]>) => this.#access.removeUser(...removed);
  forgetUsers = (...before: Parameters<Access["forgetUsers"]>) => this.#access.forgetUsers(...before);

  /**
   * Runs changes of resources one after the other, across all servers: each sees what earlier changes have written.
   * Owners take turns.
   */
  exclusively<T>(ownerNo: number, change: () => Promise<T>): Promise<T> {
    const { shared } = this.#stores;
    return this.#changes.do(ownerNo, async () => {
      if (turns.isOver) await turns.take(["changes"]);
      if (!shared) return change();
      return shared.exclusively(async () => {
        await this.refresh();
        return change();
      });
    });
  }
  /** How many of an owner's changes wait for their turn. */
  changesWaiting = (ownerNo: number): number => this.#changes.waitingOf(ownerNo);

  /** An endpoint that takes requests; a pod is none. */
  endpoint = (id: string) => this.#endpoints.byId(id);
  pod = (id: string) => this.#endpoints.pod(id);
  endpointByNo = (no: number) => this.#endpoints.byNo(no);
  /** All endpoints, pods included. */
  endpoints = () => this.#endpoints.all();
  createEndpoint = (...made: Parameters<Endpoints["create"]>) => this.#endpoints.create(...made);
  saveEndpoint = (...saved: Parameters<Endpoints["save"]>) => this.#endpoints.save(...saved);
  removeEndpoint = (...removed: Parameters<Endpoints["remove"]>) => this.#endpoints.remove(...removed);
  /** Records how a worker's start went, see {@link Endpoints.noteStart}. */
  noteStart = (...note: Parameters<Endpoints["noteStart"]>) => this.#endpoints.noteStart(...note);
  /** A version of an endpoint, if it is still kept. */
  release = (no: number, n: number): Promise<Release | undefined> => this.#stores.endpoints.release(no, n);
  /** The most jobs that a worker of the serving version has held or asked for; 1 until known. */
  slots = (...asked: Parameters<Endpoints["slots"]>) => this.#endpoints.slots(...asked);
  noteSlots = (...noted: Parameters<Endpoints["noteSlots"]>) => this.#endpoints.noteSlots(...noted);
  /** Calls `listener` with each endpoint that is new, changed or deleted, here or on another server. */
  onPut = (listener: Endpoints["onPut"]) => void (this.#endpoints.onPut = listener);
  /** Calls `listener` for each endpoint that is forgotten, so that other memory kept for it is freed. */
  onForget = (listener: (endpointNo: number, id: string) => void) => this.#endpoints.onForget(listener);

  template = (id: string) => this.#templates.get(id);
  templates = () => this.#templates.all();
  createTemplate = (made: Parameters<Stores["templates"]["create"]>[0]) =>
    this.#templates.put(() => this.#stores.templates.create(made));
  saveTemplate = (template: Template, settings: Template["settings"]) =>
    this.#templates.put(async () => {
      await this.#stores.templates.save(template.no, settings);
      return { ...template, settings };
    });
  removeTemplate = (template: Template) =>
    this.#templates.remove(template, () => this.#stores.templates.remove(template.no));

  volume = (id: string) => this.#volumes.get(id);
  volumes = () => this.#volumes.all();
  createVolume = (made: Omit<Volume, "no">) => this.#volumes.put(() => this.#stores.volumes.create(made));
  saveVolume = (volume: Volume) => this.#volumes.put(() => this.#stores.volumes.save(volume).then(() => volume));
  removeVolume = (volume: Volume, used: { gbMs: number; endedAt: number }) =>
    this.#volumes.remove(volume, () => this.#stores.volumes.remove(volume, used));

  registryAuth = (id: string) => this.#registryAuths.get(id);
  registryAuths = () => this.#registryAuths.all();
  createRegistryAuth = (made: Omit<RegistryAuth, "no">) =>
    this.#registryAuths.put(() => this.#stores.registryAuths.create(made));
  saveRegistryAuth = (auth: RegistryAuth) =>
    this.#registryAuths.put(() => this.#stores.registryAuths.save(auth).then(() => auth));
  removeRegistryAuth = (auth: RegistryAuth) =>
    this.#registryAuths.remove(auth, () => this.#stores.registryAuths.remove(auth.no));

  worker = (id: string) => this.#workers.byId(id);
  workerByNo = (no: number) => this.#workers.byNo(no);
  /** Workers that have not ended. */
  liveWorkers = () => this.#workers.live();
  /** Workers that have ended, until they are forgotten. */
  endedWorkers = () => this.#workers.ended();
  endings = () => this.#workers.endings;
  endedWorkersOf = (endpointNo: number) => this.#workers.endedOf(endpointNo);
  workersOf = (endpointNo: number) => this.#workers.of(endpointNo);
  async createWorker(made: Parameters<Workers["create"]>[0]) {
    const live = await this.#workers.create(made);
    this.#options.onChange?.();
    return live;
  }
  /** Changes a worker's row; false if the table of its life does not allow it, see {@link Workers.change}. */
  changeWorker = (...change: Parameters<Workers["change"]>) => this.#workers.change(...change);
  /** Gives a waiting worker its place. False if it no longer waits, or another server runs the scaler. */
  placeWorker = (...placed: Parameters<Workers["place"]>) => this.#workers.place(...placed);
  /** An endpoint's workers including ended ones, newest first. */
  workersListed = (endpointNo: number, limit: number): Promise<Worker[]> =>
    this.#stores.workers.ofEndpoint(endpointNo, limit);
  /** A worker's row, even if the worker ended long ago. */
  workerListed = (id: string): Promise<Worker | undefined> => this.#stores.workers.find(id);

  /** Deletes the rows of workers that ended long ago. */
  async forgetWorkers(endedBefore: number): Promise<void> {
    this.#workers.forget(endedBefore);
    const { forgottenAtOnce: most } = limits;
    while ((await this.#stores.workers.forget(endedBefore, most)) === most);
  }
  /** Forgets which rows were changed long ago: all servers have read them. */
  forgetChanges = (): Promise<void> => this.#cursor.forget();
  /**
   * Forgets workers that ended, and endpoints that were deleted, before a time, once nothing of theirs is left to do; of
   * workers that never ran, those that ended before another time. Affects memory only.
   */
  async forgetEnded(before: number, neverRanBefore: number): Promise<void> {
    this.#workers.forget(before, neverRanBefore);
    await this.#endpoints.forget(before, (endpointNo) => this.workersOf(endpointNo).length > 0);
  }
  /** How many entries memory has for endpoints and workers. */
  get size(): number {
    return this.#endpoints.size + this.#workers.size + this.#writes.size;
  }
}
