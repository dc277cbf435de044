import { afterEach, beforeEach } from "vitest";
import { endpointDefaults } from "../domain/endpoints/endpoint.js";
import type { RevisedTable, SharedStore, Stores } from "../store/index.js";
import { openInMemory } from "../testing/database-fixture.js";
import { plainTemplate } from "../testing/facts-fixture.js";
import { Registry } from "./registry.js";

/** The numbers of the written workers, in order: a mark is the length of this list. */
export let written: number[];
/** The tables' revisions; a table without one is read each time. */
let revisions: Partial<Record<RevisedTable, string>>;

const sharedBy = ({ workers }: Stores): SharedStore => ({
  serverNo: 1,
  beat: async () => ({ leases: new Set(), servers: [], hosts: [] }),
  leave: async () => {},
  forgetSilent: async () => {},
  grant: async () => 0,
  exclusively: (change) => change(),
  freeChanges: async () => {},
  hostFacts: async () => new Map(),
  time: async () => 0,
  marks: async () => ({ mark: String(written.length), revisions }),
  changesSince: async () => new Map(),
  forgetChanges: async () => {},
  workersSince: async (mark, endedSince) =>
    (await workers.all(endedSince)).filter(({ no }) => written.slice(Number(mark)).includes(no)),
});

/** A database that records which workers are written, as PostgreSQL does. */
function noting(database: Stores): Stores {
  const workers: Stores["workers"] = {
    ...database.workers,
    async create(made) {
      const row = await database.workers.create(made);
      written.push(row.no);
      return row;
    },
    async change(no, change) {
      const isChanged = await database.workers.change(no, change);
      if (isChanged) written.push(no);
      return isChanged;
    },
  };
  return { ...database, workers, shared: sharedBy(database) };
}
const settings = { ...endpointDefaults, name: "first", templateId: "template000001" };
export const named = (name: string) => ({ ...settings, name });
export const startAt = 1_790_000_000_000;

export let database: Stores;
export let stores: Stores;
/** Calls that wait here, before or after they have reached the database, until a test releases them. */
let held: Map<string, { at: "before" | "after"; reached: () => void; go: Promise<void> }>;
export let ours: Registry;
export let others: Registry;
export let now: number;

/** Stores whose calls a test can delay. */
function slow<T extends object>(name: string, store: T): T {
  return new Proxy(store, {
    get:
      (target, verb: string) =>
      async (...args: unknown[]) => {
        const call = () => (target as Record<string, (...args: unknown[]) => unknown>)[verb]!(...args);
        const hold = held.get(`${name}.${verb}`);
        if (!hold) return call();
        held.delete(`${name}.${verb}`);
        const result = hold.at === "after" ? await call() : undefined;
        hold.reached();
        await hold.go;
        return hold.at === "after" ? result : call();
      },
  });
}

/** Stores that record each call. */
export function counted(stores: Stores, asked: string[]): Stores {
  const noting = <T extends object>(name: string, store: T): T =>
    new Proxy(store, {
      get: (target, verb: string) => {
        asked.push(`${name}.${verb}`);
        return (target as Record<string, unknown>)[verb];
      },
    });
  const { access, endpoints, templates, volumes, registryAuths, workers } = stores;
  const all = { access, endpoints, templates, volumes, registryAuths, workers };
  return { ...stores, ...Object.fromEntries(Object.entries(all).map(([name, store]) => [name, noting(name, store)])) };
}

/** Holds the next call of a store's verb; `reached` resolves once it is held. */
export function holdNext(verb: string, at: "before" | "after") {
  let reached = () => {};
  let go = () => {};
  let fail = (_error: Error) => {};
  const there = new Promise<void>((resolve) => {
    reached = resolve;
  });
  const going = new Promise<void>((resolve, reject) => {
    go = resolve;
    fail = reject;
  });
  held.set(verb, { at, reached, go: going });
  return { reached: there, go, fail };
}

/** Opens two servers on one database before each test of a file: ours, whose calls a test can hold, and another. */
export function openServers(): void {
  beforeEach(async () => {
    held = new Map();
    now = startAt;
    database = openInMemory(() => {});
    written = [];
    revisions = {};
    stores = noting(database);
    const slowly: Stores = {
      ...stores,
      shared: slow("shared", stores.shared as SharedStore),
      endpoints: slow("endpoints", stores.endpoints),
      templates: slow("templates", stores.templates),
      workers: slow("workers", stores.workers),
    };
    ours = new Registry(slowly, { now: () => now });
    others = new Registry(stores, { now: () => now });
    for (const registry of [ours, others]) await registry.load(now);
  });
  afterEach(() => database.close());
}

export function passTime(ms: number): void {
  now += ms;
}

/** From now on the tables have these revisions. */
export function revise(to: typeof revisions): void {
  revisions = to;
}

export const made = { id: "endpoint000001", ownerNo: 1, settings, template: plainTemplate, createdAt: startAt };
export const worker = { id: "worker00000001", endpointNo: 1, version: 1, hostNo: 1, createdAt: startAt };
