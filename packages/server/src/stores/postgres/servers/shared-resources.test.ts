import pg from "pg";
import { describe, expect, it } from "vitest";
import { Registry } from "../../../memory/registry.js";
import type { RevisedTable, Stores } from "../../../store/index.js";
import { plainHost, plainTemplate, plainUser, workerChanges } from "../../../testing/facts-fixture.js";
import { waitingProcess } from "../../contracts/postgres-fixture.js";
import { startAt } from "../../contracts/scene.js";
import { both, countsHold, on, openTwoServers, scene, submit, times, url, workers } from "./two-servers-fixture.js";

openTwoServers();

async function connectTo(connectionString: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString });
  await client.connect();
  return client;
}

describe("Two servers on one database", () => {
  it("read the workers written since a mark, including writes in flight when it was made", async () => {
    const { shared } = both[1];
    const since = async (mark: string) => (await shared!.workersSince(mark, 0)).map(({ no }) => no).sort();
    const { mark: begun } = await shared!.marks();
    await both[0].workers.change(workers[0]!, workerChanges.close);
    expect(await since(begun)).toContain(workers[0]);
    const client = await connectTo(url);
    await client.query("BEGIN");
    await client.query("UPDATE worker SET slots = 2 WHERE no = $1", [workers[1]]);
    await both[0].workers.change(workers[3]!, workerChanges.close); // later, and over before
    const { mark: between } = await shared!.marks();
    await both[0].workers.change(workers[2]!, workerChanges.close);
    expect(await since(between)).not.toContain(workers[1]);
    await client.query("COMMIT");
    await client.end();
    expect(await since(between)).toEqual(expect.arrayContaining([workers[1], workers[2]]));
    expect(await since((await shared!.marks()).mark)).toEqual([]);
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

  it("read the rows changed since a mark, deleted ones and those in flight when it was made included", async () => {
    const [writing, reading] = both;
    const shared = reading.shared!;
    const since = async (mark: string) => new Map([...(await shared.changesSince(mark))].toSorted());
    const made = (id: string) => writing.templates.create({ id, ownerNo: 1, settings: plainTemplate });
    const [saved, deleted] = [await made("row-saved"), await made("row-deleted")];
    const volume = await writing.volumes.create({
      id: "row-volume",
      ownerNo: 1,
      name: "v",
      size: 1,
      dataCenterId: "",
      sizedAt: 1,
      gbMs: 0,
    });
    const client = await connectTo(url);
    await client.query("BEGIN");
    await client.query("UPDATE volume SET size = 2 WHERE no = $1", [volume.no]);
    const { mark } = await shared.marks();
    await writing.templates.save(saved.no, { ...plainTemplate, readme: "saved" });
    await writing.templates.remove(deleted.no);
    await client.query("COMMIT");
    await client.end();
    const changed = await since(mark);
    expect(changed.get("volume")).toEqual([volume.no]);
    expect(changed.get("template")?.toSorted((a, b) => a - b)).toEqual([saved.no, deleted.no]);
    expect((await reading.templates.some([saved.no, deleted.no])).map(({ id }) => id)).toEqual(["row-saved"]);
    const { mark: later } = await shared.marks();
    expect(await since(later)).toEqual(new Map());
    await shared.forgetChanges(later);
    expect(await since(mark)).toEqual(new Map());
    await writing.templates.remove(saved.no);
    await writing.volumes.remove(volume, { gbMs: 0, endedAt: 2 });
  });

  it("read nothing again while nothing changes, and then only the changes", async () => {
    const [writing, reading] = both;
    const read: string[] = [];
    const watched = <T extends object>(name: string, store: T): T =>
      new Proxy(store, {
        get(target, verb: string) {
          if (["all", "some", "keys", "someKeys", "users"].includes(verb)) read.push(`${name}.${verb}`);
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
    expect(read.toSorted()).toEqual(["access.keys", "access.users", "templates.some"]);
    expect(registry.template(made.id)).toEqual(template);
    // If this server writes while a read is under way, the next refresh reads again.
    read.length = 0;
    const refreshed = registry.refresh();
    await registry.removeTemplate(template);
    await refreshed;
    await registry.refresh();
    expect([registry.template(made.id), new Set(read)]).toEqual([undefined, new Set(["templates.some"])]);
  });

  it("keep in memory the volumes and credentials that were made or changed, here and elsewhere", async () => {
    const [writing, reading] = both;
    const registry = new Registry(reading, { now: () => 0 });
    await registry.load(0);
    await registry.refresh(); // from here on only what changes is read
    const auth = { id: "auth-kept", ownerNo: 1, name: "kept", username: "u", password: "p" };
    const mine = await registry.createRegistryAuth(auth);
    const theirs = await writing.volumes.create({
      id: "volume-kept",
      ownerNo: 1,
      name: "v",
      size: 1,
      dataCenterId: "",
      sizedAt: 1,
      gbMs: 0,
    });
    await registry.refresh();
    expect([registry.registryAuth(auth.id), registry.volume(theirs.id)]).toEqual([mine, theirs]);
    await writing.volumes.save({ ...theirs, size: 2 });
    await registry.refresh();
    expect(registry.volume(theirs.id)).toEqual({ ...theirs, size: 2 });
    await registry.removeRegistryAuth(mine);
    await writing.volumes.remove(theirs, { gbMs: 0, endedAt: 2 });
    await registry.refresh();
    expect([registry.registryAuth(auth.id), registry.volume(theirs.id)]).toEqual([undefined, undefined]);
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
    const silent = "a host that has not reported yet";
    await scene.stores.hosts.ensure(silent, 0);
    const reported = await on(0).shared!.hostFacts();
    expect(reported.get("other host")).toEqual(JSON.parse(JSON.stringify(plainHost)));
    expect(reported.has(silent)).toBe(false);
  });

  it("make changes again if the other one is frozen in the middle of one and silent", async () => {
    const [begun, frozen] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const change = both[0].shared!.exclusively(() => {
      begun.resolve();
      return frozen.promise;
    });
    await begun.promise;
    let isMade = false;
    const other = both[1].shared!.exclusively(async () => {
      isMade = true;
    });
    await waitingProcess(url);
    await both[1].shared!.freeChanges([both[1].shared!.serverNo]); // not the one that holds it
    await waitingProcess(url); // still
    expect(isMade).toBe(false);
    await both[1].shared!.freeChanges([both[0].shared!.serverNo]);
    await other;
    expect(isMade).toBe(true);
    frozen.resolve();
    await change; // its change has begun, and is not begun again
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
