import pg from "pg";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { startPostgres, type TestPostgres } from "../../../../../../scripts/postgres.mjs";
import type { Change } from "../../../domain/jobs/job.js";
import { Registry } from "../../../memory/registry.js";
import type { NewJob, RevisedTable, Stores, TakenJob } from "../../../store/index.js";
import { plainHost, plainTemplate, plainUser, workerChanges } from "../../../testing/facts-fixture.js";
import { makeDatabase, openAs, openEmptied } from "../../contracts/postgres-fixture.js";
import { completed, day, idsOf, Scene, startAt } from "../../contracts/scene.js";

let server: TestPostgres;
let url: string;
let scene: Scene;
/** Two servers on one database. */
let both: readonly [Stores, Stores];
let workers: number[];

beforeAll(async () => {
  server = await startPostgres({ settings: { fsync: "off", deadlock_timeout: "100ms" } });
  url = await makeDatabase(server, "two");
});
afterAll(() => server.end());
beforeEach(async () => {
  scene = await Scene.open(() => openEmptied(url));
  both = [scene.stores, await openAs("other host", url)];
  workers = await Promise.all([1, 2, 3, 4].map((n) => scene.worker(`worker0000000${n}`)));
});
afterEach(async () => {
  await both[1].close();
  await scene.end();
});

async function connectTo(connectionString: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString });
  await client.connect();
  return client;
}

const times = (count: number) => Array.from({ length: count }, (_, n) => n);
const on = (n: number): Stores => both[n % 2]!;
const submit = (n: number, more: Partial<NewJob> = {}) => on(n).jobs.submit(scene.newJob(more));

/** Checks that the counts match the rows, on both servers. */
async function countsHold(): Promise<void> {
  const { endpointNo } = scene;
  const tally = await both[0].tallies.tally(endpointNo);
  expect(await both[0].tallies.recount(endpointNo)).toEqual(tally);
  expect(await both[1].tallies.tally(endpointNo)).toEqual(tally);
}

describe("Two servers on one database", () => {
  it("give each of thousands of jobs to one worker, and to each worker in order", async () => {
    const ids: string[] = [];
    const rest = new Set<string>();
    const submitting = (async () => {
      for (const turn of times(10)) {
        const jobs = times(400).map(() => scene.newJob());
        for (const { id } of jobs) rest.add(id);
        await Promise.all(jobs.map((job, n) => on(n + turn).jobs.submit(job)));
        ids.push(...idsOf(jobs));
      }
    })();
    const taken: TakenJob[][] = workers.map(() => []);
    const taking = workers.map(async (workerNo, n) => {
      while (rest.size > 0) {
        const turns = times(3).map(() => on(n).jobs.take(scene.endpointNo, [{ workerNo, count: 7 }], scene.now));
        for (const { jobs } of await Promise.all(turns)) {
          taken[n]!.push(...jobs);
          for (const { id } of jobs) rest.delete(id);
        }
      }
    });
    await Promise.all([submitting, ...taking]);
    const all = taken.flat();
    expect(all).toHaveLength(4_000);
    expect(new Set(idsOf(all)).size).toBe(4_000);
    expect(all.every(({ starts }) => starts === 1)).toBe(true);
    await countsHold();
    expect(await scene.tally()).toMatchObject({ waiting: 0, running: 4_000 });
  });

  it("hand out jobs in the order of submission, whichever server's worker asks", async () => {
    const ids = await scene.submitMany(200);
    const order: string[] = [];
    for (const n of times(20)) {
      const asks = [{ workerNo: workers[n % 4]!, count: 10 }];
      order.push(...idsOf((await on(n).jobs.take(scene.endpointNo, asks, scene.now)).jobs));
    }
    expect(order).toEqual(ids);
  });

  it("keep the order when a submission between two others was rolled back", async () => {
    const first = await scene.submit();
    await expect(submit(1, { id: first })).rejects.toThrow();
    const second = scene.newJob();
    await on(1).jobs.submit(second);
    expect(idsOf(await scene.take(workers[0]!, 3))).toEqual([first, second.id]);
    await countsHold();
  });

  it("make one job per key, whichever server is called and however often", async () => {
    const keyed = (n: number) => ({
      idempotency: { keyHash: `key-${n % 20}`, bodyHash: "body", route: "run", expiresAt: scene.now + day },
    });
    const outcomes = await Promise.all(times(200).map((n) => submit(Math.floor(n / 20) + n, keyed(n))));
    expect(outcomes.filter(({ kind }) => kind === "submitted")).toHaveLength(20);
    expect(outcomes.filter(({ kind }) => kind === "known")).toHaveLength(180);
    expect(await scene.take(workers[0]!, 100)).toHaveLength(20);
    await countsHold();
  });

  it("let one of several simultaneous ends of a job win", { timeout: 120_000 }, async () => {
    const changes: Change[] = [
      { by: "cancel" },
      { by: "timeOut", error: "too slow" },
      { by: "giveBack", excused: false },
    ];
    for (const round of times(15)) {
      await scene.submitMany(8);
      const jobs = await scene.take(workers[0]!, 8);
      const read = await Promise.all(jobs.map(({ id }) => scene.job(id)));
      const won = read.map(() => 0);
      await Promise.all(
        read.flatMap((job, n) => [
          on(round)
            .jobs.settle({
              endpointNo: scene.endpointNo,
              jobId: job.id,
              workerNo: workers[0]!,
              verdict: completed("1"),
              now: scene.now,
            })
            .then((settled) => settled && won[n]!++),
          ...changes.map((change, at) =>
            on(round + at + n)
              .jobs.change(job, change, scene.now)
              .then((settled) => settled && won[n]!++),
          ),
        ]),
      );
      expect(won).toEqual(read.map(() => 1));
      await countsHold();
      // Jobs that were given back must not disturb the next round.
      await scene.stores.jobs.cancelWaiting({
        endpointNo: scene.endpointNo,
        upToPlace: Number.MAX_SAFE_INTEGER,
        error: "done",
        now: scene.now,
        limit: 100,
      });
    }
    expect(await scene.tally()).toMatchObject({ waiting: 0, running: 0 });
  });

  it("leave no chunk of an earlier start in the next one", { timeout: 120_000 }, async () => {
    for (const round of times(25)) {
      const id = await scene.submit();
      await scene.takeOne(workers[0]!);
      const job = await scene.job(id);
      const append = (stores: Stores, workerNo: number, output: string) =>
        stores.chunks.append({ endpointNo: scene.endpointNo, jobId: id, workerNo, chunks: [{ output }] });
      const results = await Promise.all([
        ...times(6).map((n) => append(on(n), workers[0]!, '"old"')),
        on(round).jobs.change(job, { by: "giveBack", excused: true }, scene.now),
        ...times(6).map((n) => append(on(n + 1), workers[0]!, '"old"')),
      ]);
      expect(results[6]).toMatchObject({ status: "IN_QUEUE" });
      expect(await scene.stores.chunks.read(job.no, 0, 1_000)).toEqual([]);
      await scene.takeOne(workers[1]!);
      expect(await append(on(round), workers[0]!, '"old"')).toBe(false);
      expect(await append(on(round + 1), workers[1]!, '"new"')).toBe(true);
      const chunks = await scene.stores.chunks.read(job.no, 0, 1_000);
      expect(chunks).toEqual([{ index: 0, start: 2, output: '"new"', metrics: undefined }]);
      await scene.settle(id, workers[1]!);
    }
  });

  it("hand each chunk to one reader, in order, while chunks come", async () => {
    const id = await scene.submit();
    await scene.takeOne(workers[0]!);
    const { no } = await scene.job(id);
    let over = false;
    const writing = (async () => {
      for (const n of times(100))
        await on(n).chunks.append({
          endpointNo: scene.endpointNo,
          jobId: id,
          workerNo: workers[0]!,
          chunks: [{ output: `${n}` }],
        });
      over = true;
    })();
    const handed: number[] = [];
    const reading = times(6).map(async (n) => {
      let last = -1;
      for (let isLast = false; !isLast; ) {
        isLast = over;
        const { chunks } = await on(n).chunks.handOut(no, 5);
        for (const { index } of chunks) {
          expect(index).toBeGreaterThan(last);
          last = index;
          handed.push(index);
        }
      }
    });
    await Promise.all([writing, ...reading]);
    for (let more = true; more; ) {
      const rest = await on(0).chunks.handOut(no, 1_000);
      handed.push(...rest.chunks.map(({ index }) => index));
      ({ more } = rest);
    }
    expect(handed.sort((a, b) => a - b)).toEqual(times(100));
  });

  it("either cancel or hand out a waiting job, never both", async () => {
    for (const round of times(5)) {
      const ids = await scene.submitMany(60);
      const upTo = await scene.stores.reader.lastPlace();
      const [cancelled, more, ...turns] = await Promise.all([
        on(round).jobs.cancelWaiting({
          endpointNo: scene.endpointNo,
          upToPlace: upTo,
          error: "purged",
          now: scene.now,
          limit: 40,
        }),
        on(round + 1).jobs.cancelWaiting({
          endpointNo: scene.endpointNo,
          upToPlace: upTo,
          error: "purged",
          now: scene.now,
          limit: 40,
        }),
        ...workers.map((workerNo, n) => on(n).jobs.take(scene.endpointNo, [{ workerNo, count: 10 }], scene.now)),
      ]);
      const seen = [...idsOf(cancelled), ...idsOf(more), ...turns.flatMap(({ jobs }) => idsOf(jobs))];
      expect(new Set(seen).size).toBe(seen.length);
      expect(seen.every((id) => ids.includes(id))).toBe(true);
      await scene.stores.jobs.cancelWaiting({
        endpointNo: scene.endpointNo,
        upToPlace: upTo,
        error: "done",
        now: scene.now,
        limit: 100,
      });
      await countsHold();
    }
  });

  it("sweep different jobs at the same time, and stop each running job once", async () => {
    await scene.submitMany(120, {
      ttlEndAt: startAt + 10_000,
      idempotency: undefined,
    });
    for (const n of times(40)) {
      const idempotency = { keyHash: `key-${n}`, bodyHash: "body", route: "run", expiresAt: startAt + 10_000 };
      await submit(n, { ttlEndAt: startAt + 10_000, idempotency });
    }
    await scene.take(workers[0]!, 30);
    scene.now = startAt + 10_000;
    const swept = await Promise.all(times(8).map((n) => on(n).jobs.sweep(scene.now, 20)));
    expect(swept.reduce((sum, { deleted, stopped }) => sum + deleted + stopped.length, 0)).toBe(160);
    const stopped = swept.flatMap((each) => idsOf(each.stopped));
    expect([stopped.length, new Set(stopped).size]).toEqual([30, 30]);
    await countsHold();
    expect(await scene.tally()).toMatchObject({ waiting: 0, running: 0 });
  });

  it("settle many jobs in opposite orders without a deadlock", { timeout: 120_000 }, async () => {
    for (const round of times(6)) {
      const ids = await scene.submitMany(150);
      await scene.take(workers[0]!, 150);
      const orders = [ids, ids.toReversed(), ids.toSorted(), ids.toReversed()];
      const outcomes = await Promise.all(
        orders.flatMap((order, n) =>
          order.map((id) =>
            on(n + round).jobs.settle({
              endpointNo: scene.endpointNo,
              jobId: id,
              workerNo: workers[0]!,
              verdict: completed("1"),
              now: scene.now,
            }),
          ),
        ),
      );
      expect(outcomes.filter((settled) => settled).length).toBe(150);
      await countsHold();
    }
    expect(await scene.tally()).toMatchObject({ completed: 900, running: 0 });
  });

  it.each([
    ["settle jobs", (id: string) => scene.settle(id, workers[0]!)],
    ["append chunks", (id: string) => scene.append(id, workers[0]!, '"chunk"')],
  ])("%s in one order, whatever the order of the calls, and return each call its own result", async (_, say) => {
    const [low, high] = (await scene.submitMany(2)) as [string, string];
    await scene.take(workers[0]!, 2);
    const other = new pg.Client(url);
    await other.connect();
    const blocked = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
    try {
      await other.query("BEGIN");
      await other.query("SELECT 1 FROM job WHERE id = $1 FOR UPDATE", [low]);
      const words = [say("nobody's"), say(high), say(low)];
      await vi.waitFor(async () => expect((await other.query(blocked)).rows).toHaveLength(1), { timeout: 20_000 });
      // A call that waits for the first row must hold no row that another call may need.
      await other.query("SELECT 1 FROM job WHERE id = $1 FOR UPDATE NOWAIT", [high]);
      await other.query("COMMIT");
      const [nobodys, ...both] = await Promise.all(words);
      expect(nobodys || undefined).toBeUndefined();
      expect(both.map((said) => (typeof said === "object" ? said.id : said))).toEqual(
        typeof both[0] === "object" ? [high, low] : [true, true],
      );
    } finally {
      await other.end();
    }
  });

  it("read the workers written since a mark, including writes in flight when it was made", async () => {
    const { shared } = both[1];
    const since = async (mark: string) => (await shared!.workersSince(mark, 0)).map(({ no }) => no).sort();
    const { workers: begun } = await shared!.marks();
    await both[0].workers.change(workers[0]!, workerChanges.close);
    expect(await since(begun)).toContain(workers[0]);
    const client = await connectTo(url);
    await client.query("BEGIN");
    await client.query("UPDATE worker SET slots = 2 WHERE no = $1", [workers[1]]);
    await both[0].workers.change(workers[3]!, workerChanges.close); // later, and over before
    const { workers: between } = await shared!.marks();
    await both[0].workers.change(workers[2]!, workerChanges.close);
    expect(await since(between)).not.toContain(workers[1]);
    await client.query("COMMIT");
    await client.end();
    expect(await since(between)).toEqual(expect.arrayContaining([workers[1], workers[2]]));
    expect(await since((await shared!.marks()).workers)).toEqual([]);
  });

  it("see from a table's revision that it was written, and do not read unchanged tables again", async () => {
    const [writing, reading] = both;
    const { shared } = reading;
    const revision = async (table: RevisedTable) => (await shared!.marks()).revisions[table];
    const before = (await shared!.marks()).revisions;
    const template = await writing.templates.create({ id: "template-revised", ownerNo: 1, settings: plainTemplate });
    const created = await revision("template");
    expect(created).not.toBe(before.template);
    await writing.templates.save(template.no, { ...plainTemplate, readme: "saved" });
    const saved = await revision("template");
    await writing.templates.remove(template.no);
    expect(new Set([before.template, created, saved, await revision("template")]).size).toBe(4);
    expect({ ...(await shared!.marks()).revisions, template: undefined }).toEqual({ ...before, template: undefined });
    // An uncommitted write is seen once it is committed.
    const client = await connectTo(url);
    await client.query("BEGIN");
    await client.query("UPDATE endpoint SET verdict = 'seen'");
    expect(await revision("endpoint")).toBe(before.endpoint);
    await client.query("COMMIT");
    expect(await revision("endpoint")).not.toBe(before.endpoint);
    await client.end();
  });

  it("read nothing again while nothing changes, and then only the changes", async () => {
    const [writing, reading] = both;
    const read: string[] = [];
    const watched = <T extends object>(name: string, store: T): T =>
      new Proxy(store, {
        get(target, verb: string) {
          if (["all", "keys", "users"].includes(verb)) read.push(`${name}.${verb}`);
          return target[verb as keyof T];
        },
      });
    const names = ["endpoints", "templates", "volumes", "registryAuths", "access"] as const;
    const stores = Object.fromEntries(names.map((name) => [name, watched(name, reading[name])]));
    const registry = new Registry({ ...reading, ...stores } as Stores, { now: () => 0 });
    await registry.load(0);
    await registry.refresh(); // from here on the revisions are known
    read.length = 0;
    for (let n = 0; n < 3; n++) await registry.refresh();
    expect(read).toEqual([]);
    const made = { id: "template-noticed", ownerNo: 1, settings: plainTemplate };
    const template = await writing.templates.create(made);
    await writing.access.createUser({ ...plainUser, id: "user-noticed" });
    await registry.refresh();
    expect(read.toSorted()).toEqual(["access.keys", "access.users", "templates.all"]);
    expect(registry.template(made.id)).toEqual(template);
    // If this server writes while a read is under way, the next refresh reads again.
    read.length = 0;
    const refreshed = registry.refresh();
    await registry.removeTemplate(template);
    await refreshed;
    await registry.refresh();
    expect([registry.template(made.id), new Set(read)]).toEqual([undefined, new Set(["templates.all"])]);
  });

  it("read the templates and endpoints that other servers changed, and keep the objects of unchanged ones", async () => {
    const settings = { ...plainTemplate, readme: "first" };
    const made = [];
    for (const n of times(5)) made.push(await both[0].templates.create({ id: `resource${n}`, ownerNo: 1, settings }));
    const mine = async (n: 0 | 1) => (await both[n].templates.all()).filter(({ id }) => id.startsWith("resource"));
    const before = await mine(1);
    expect(before).toEqual(made);
    await both[0].templates.save(made[1]!.no, { ...settings, readme: "second" });
    await both[0].templates.remove(made[3]!.no);
    const more = await both[0].templates.create({ id: "resource9", ownerNo: 1, settings });
    const after = await mine(1);
    expect(after.map(({ id, settings: { readme } }) => `${id} ${readme}`)).toEqual([
      "resource0 first",
      "resource1 second",
      "resource2 first",
      "resource4 first",
      "resource9 first",
    ]);
    expect([after[0], after[2], after[3]].map((each) => before.includes(each!))).toEqual([true, true, true]);
    expect(before.includes(after[1]!)).toBe(false);
    expect(after[4]).toEqual(more);
    const endpoints = await both[1].endpoints.all();
    await both[0].endpoints.save(scene.endpointNo, { ...endpoints[0]!.settings, name: "renamed" }, undefined);
    const renamed = (await both[1].endpoints.all()).filter((each) => !endpoints.includes(each));
    expect(renamed.map(({ settings: { name } }) => name)).toEqual(["renamed"]);
  });

  it("record signs of life of the same workers in any order without a deadlock", async () => {
    const many = await Promise.all(times(60).map((n) => scene.worker(`shared${String(n).padStart(8, "0")}`)));
    const names = ["host", "other host"] as const;
    const hosts = await Promise.all(names.map((name) => scene.stores.hosts.ensure(name, 0)));
    for (const round of times(10)) {
      const now = startAt + round * 1_000;
      const sign = (workerNo: number) => ({ workerNo, seenAt: now, busyAt: now, polledAt: now, slots: 1 });
      const beats = [many, many.toReversed()].map((order, n) =>
        on(n).shared!.beat({
          report: {},
          hosts: [{ no: hosts[n]!, id: names[n]!, facts: plainHost }],
          now,
          seenAt: now,
          leases: ["a", "b"],
          untilAt: now + 5_000,
          signs: order.map(sign),
        }),
      );
      const leases = (await Promise.all(beats)).map((said) => [...said.leases]);
      expect(leases.flat().sort()).toEqual(["a", "b"]);
    }
  });

  it("give a waiting worker its place if they own the scaler, and not if the other server does", async () => {
    const names = ["host", "other host"] as const;
    const hosts = await Promise.all(names.map((name) => scene.stores.hosts.ensure(name, 0)));
    const moments = { now: startAt, seenAt: startAt, untilAt: startAt + 5_000 };
    const beat = {
      report: {},
      hosts: [{ no: hosts[1]!, id: names[1], facts: plainHost }],
      ...moments,
      leases: ["scale"],
      signs: [],
    };
    expect([...(await both[1].shared!.beat(beat)).leases]).toEqual(["scale"]);
    const found = { hostNo: hosts[0]!, resources: { gpus: [], cpus: 1, memoryMib: 1_024 }, placedAt: startAt };
    expect(await both[0].workers.place(workers[0]!, found)).toBe(false);
    expect(await both[1].workers.place(workers[0]!, found)).toBe(true);
  });

  it("can save an endpoint during endless submissions to it", async () => {
    let over = false;
    const submitting = times(60).map(async (n) => {
      while (!over) await submit(n);
    });
    const { id } = (await scene.stores.endpoints.all())[0]!;
    for (const n of times(10))
      await on(n).endpoints.noteStart(scene.endpointNo, {
        present: 1,
        tried: 1,
        failedStarts: n,
        at: scene.now,
        isHeld: false,
      });
    await on(1).endpoints.remove(scene.endpointNo, scene.now);
    expect(await submit(0)).toEqual({ kind: "closed" });
    over = true;
    await Promise.all(submitting);
    expect((await both[0].endpoints.all()).find((each) => each.id === id)).toMatchObject({ failedStarts: 9 });
    await countsHold();
  });
});
