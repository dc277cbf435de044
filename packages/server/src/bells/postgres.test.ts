import pg from "pg";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { startPostgres, type TestPostgres } from "../../../../scripts/postgres.mjs";
import type { Bell, Topic } from "../bell.js";
import { limits } from "../limits/index.js";
import { startProxy, type TestProxy } from "../stores/contracts/proxy-fixture.js";
import { type PostgresBellOptions, postgresBell, ServerTaken } from "./postgres.js";

let server: TestPostgres;
let proxy: TestProxy;
/** Listens to the notifications on the wire. */
let wire: pg.Client;
let payloads: string[];
let bells: Bell[];
/** True except during a ring: otherwise the safety net would ring everything now and then, too. */
let alone: boolean;
function among(others: () => void): void {
  alone = false;
  others();
  alone = true;
}

/** Shorter than in service, but in the same order: no test waits for a production timer. */
const patience = { netMs: 2_000, hostLockMs: 4_000 };
const { netMs, hostLockMs } = limits;

beforeAll(async () => {
  Object.assign(limits, patience);
  server = await startPostgres({ settings: { fsync: "off" } });
  proxy = await startProxy(server.port);
});
afterAll(async () => {
  Object.assign(limits, { netMs, hostLockMs }); // files share their process
  await proxy.end();
  await server.end();
});
beforeEach(async () => {
  bells = [];
  alone = true;
  payloads = [];
  wire = new pg.Client(server.url());
  await wire.connect();
  await wire.query("LISTEN millrace");
  wire.on("notification", ({ payload }) => payloads.push(payload ?? ""));
});
afterEach(async () => {
  await Promise.all(bells.map((bell) => bell.close()));
  await wire.end();
  const asked = "SELECT count(*)::int AS n FROM pg_stat_activity WHERE application_name = 'millrace bell'";
  const admin = new pg.Client(server.url());
  await admin.connect();
  // Closed bells must leave no connection behind.
  await vi.waitFor(async () => expect((await admin.query(asked)).rows[0].n).toBe(0), { timeout: 20_000, interval: 50 });
  await admin.end();
});

async function open(more: Partial<PostgresBellOptions> = {}): Promise<Bell> {
  const bell = await postgresBell({
    url: server.url(),
    serverId: `host ${bells.length}`,
    isAlone: () => alone,
    isServedHere: () => false,
    refresh: async () => {},
    ...more,
  });
  bells.push(bell);
  return bell;
}

/** Counts the rings of a topic. */
function count(bell: Bell, topic: Topic) {
  const heard = { times: 0 };
  bell.on(topic, () => heard.times++);
  return heard;
}
const until = (check: () => void | Promise<void>) => vi.waitFor(check, { timeout: 20_000, interval: 20 });

let marks = 0;
/** Resolves when every bell has sent what it was told before, and every bell has heard it. */
async function settled(): Promise<void> {
  const round = marks++;
  const markOf = (n: number): Topic => `job:mark-${round}-${n}`;
  among(() => {
    for (const [n, bell] of bells.entries()) bell.ringElsewhere(markOf(n)); // a bell sends topics in their order
  });
  await until(() => expect(bells.every((_, n) => topicsOf(payloads).includes(markOf(n)))).toBe(true));
  const heard = bells.map((bell) => count(bell, markOf(bells.length)));
  await wire.query("SELECT pg_notify('millrace', $1)", [`nobody ${markOf(bells.length)}`]);
  await until(() => expect(heard.every(({ times }) => times === 1)).toBe(true));
}
const topicsOf = (some: readonly string[]) => some.flatMap((payload) => payload.split(" ").slice(1));
/** The topics of each payload, without those of the tests and the announcements. */
const sent = () =>
  payloads
    .map((payload) => topicsOf([payload]).filter((topic) => topic !== "*" && !topic.startsWith("job:mark-")))
    .filter((topics) => topics.length > 0);

describe("A bell between several servers", () => {
  it("rings here at once and on other servers soon, and not here a second time", async () => {
    const [one, other] = [await open(), await open()];
    await settled();
    const [here, there] = [count(one, "job:a"), count(other, "job:a")];
    among(() => one.ring("job:a"));
    expect(here.times).toBe(1);
    await until(() => expect(there.times).toBe(1));
    await settled();
    expect([here.times, there.times]).toEqual([1, 1]);
  });

  it("can ring only on the other servers", async () => {
    const [one, other] = [await open(), await open()];
    await settled();
    const [here, there] = [count(one, "queue:1"), count(other, "queue:1")];
    among(() => one.ringElsewhere("queue:1"));
    await until(() => expect(there.times).toBe(1));
    expect(here.times).toBe(0);
  });

  it("sends nothing while it is alone, and nothing that is served here", async () => {
    const one = await open({ isServedHere: (topic) => topic === "queue:1" });
    one.ring("queue:2");
    one.ringElsewhere("queue:2");
    await settled();
    expect(sent()).toEqual([]);
    among(() => {
      one.ring("queue:1");
      one.ring("queue:2");
    });
    await settled();
    expect(sent()).toEqual([["queue:2"]]);
  });

  it("collects topics, each once, in payloads that the database accepts", async () => {
    const [one, other] = [await open(), await open()];
    await settled();
    const topics = Array.from({ length: 1_000 }, (_, n): Topic => `job:${String(n).padStart(36, "0")}`);
    const heard = topics.map((topic) => count(other, topic));
    among(() => {
      for (const topic of [...topics, ...topics]) one.ring(topic);
    });
    await until(() => expect(heard.every(({ times }) => times === 1)).toBe(true));
    await settled();
    expect(sent().length).toBeGreaterThan(1);
    expect(sent().length).toBeLessThan(20);
    for (const payload of payloads) expect(Buffer.byteLength(payload)).toBeLessThan(8_000);
    expect(heard.every(({ times }) => times === 1)).toBe(true);
  });

  it("reads another server's changes before it rings for them", async () => {
    const seen: string[] = [];
    const other = await open({
      refresh: async () => {
        await until(() => expect(seen).toEqual(["job"])); // what need not wait for the read does not
        seen.push("read");
      },
    });
    const one = await open();
    await settled();
    other.on("workers", () => seen.push("workers"));
    other.on("job:a", () => seen.push("job"));
    among(() => {
      for (const topic of ["registry", "workers", "job:a"] as const) one.ring(topic);
    });
    await until(() => expect(seen).toHaveLength(3));
    expect(seen).toEqual(["job", "read", "workers"]);
  });

  it("belongs to one server at a time", { timeout: 30_000 }, async () => {
    const first = await open({ serverId: "copied" });
    await expect(open({ serverId: "copied" })).rejects.toThrow(ServerTaken);
    await first.close();
    await open({ serverId: "copied" });
  });

  it("waits for a server that has just been killed", async () => {
    const dying = new pg.Client(server.url());
    await dying.connect();
    await dying.query("SELECT pg_advisory_lock(hashtextextended('host copied', 0))");
    const opening = open({ serverId: "copied" });
    const asked = "SELECT 1 FROM pg_stat_activity WHERE application_name = 'millrace bell' AND query ~ 'advisory'";
    await until(async () => expect((await wire.query(asked)).rows).not.toEqual([]));
    await dying.end();
    await opening;
  });

  it("announces itself to the other servers", async () => {
    const one = await open();
    const heard = count(one, "hosts");
    await settled();
    const before = heard.times;
    await open();
    await until(() => expect(heard.times).toBeGreaterThan(before));
  });
});

describe("A bell whose connections break", () => {
  const throughProxy = () => ({ url: server.url().replace(`:${server.port}/`, `:${proxy.port}/`) });

  it("rings everything when it listens again, and then works as before", async () => {
    const one = await open(throughProxy());
    const other = await open();
    await settled();
    among(() => one.ring("job:before"));
    const [all, heard, there] = [count(one, "demand"), count(one, "job:a"), count(other, "job:b")];
    await settled();
    proxy.cutAll();
    await until(() => expect(all.times).toBeGreaterThan(0));
    await until(() => {
      among(() => other.ring("job:a"));
      expect(heard.times).toBeGreaterThan(1); // once is the ring of all topics
    });
    await until(() => {
      among(() => one.ring("job:b"));
      expect(there.times).toBeGreaterThan(0);
    });
  });

  it("detects a dead connection that is still open, and listens again", { timeout: 60_000 }, async () => {
    const one = await open(throughProxy());
    const all = count(one, "demand");
    const { times } = all;
    const listeners = async () =>
      (
        await wire.query(
          `SELECT pid FROM pg_stat_activity WHERE application_name = 'millrace bell' AND query ~ '^(LISTEN|SELECT 1)' ORDER BY backend_start`,
        )
      ).rows.map(({ pid }) => pid as number);
    const [before] = await listeners();
    proxy.freezeAll();
    await until(async () => {
      const now = await listeners();
      expect(now.some((pid) => pid !== before)).toBe(true);
    });
    await until(() => expect(all.times).toBeGreaterThan(times));
    const other = await open();
    const heard = count(one, "job:a");
    await until(() => {
      among(() => other.ring("job:a"));
      expect(heard.times).toBeGreaterThan(0);
    });
  });

  it("still belongs only to its server, whichever way it broke", { timeout: 90_000 }, async () => {
    const holder = async () => {
      const { rows } = await wire.query("SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND granted");
      return rows.map(({ pid }) => pid as number);
    };
    await open({ ...throughProxy(), serverId: "copied" });
    for (const breakAll of [proxy.cutAll, proxy.freezeAll]) {
      const before = await holder();
      breakAll();
      await until(async () => {
        const now = await holder(); // a single reading: between two, the lock may change its holder
        expect(now).toHaveLength(1);
        expect(now).not.toEqual(before);
      });
    }
    await expect(open({ serverId: "copied" })).rejects.toThrow(ServerTaken);
  });

  it("the safety net rings everything every few seconds if there are other servers", { timeout: 30_000 }, async () => {
    const one = await open();
    alone = false;
    const all = count(one, "demand");
    await until(() => expect(all.times).toBeGreaterThan(0));
  });
});
