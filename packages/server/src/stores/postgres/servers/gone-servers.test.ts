import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { startPostgres, type TestPostgres } from "../../../../../../scripts/postgres.mjs";
import type { Beat, HostReport, Stores } from "../../../store/index.js";
import { plainHost, workerChanges } from "../../../testing/facts-fixture.js";
import { makeDatabase, openAs, openEmptied } from "../../contracts/postgres-fixture.js";
import { day, Scene, startAt } from "../../contracts/scene.js";
import { Connections } from "../connection/connections.js";

let server: TestPostgres;
let url: string;
let scene: Scene;
/** A server last seen at `startAt`; the scene's own server was seen a day later. */
let gone: Stores;
let goneNo: number;
let worker: number;
let reads: Connections;

beforeAll(async () => {
  server = await startPostgres({ settings: { fsync: "off" } });
  url = await makeDatabase(server, "gone");
});
afterAll(() => server.end());
beforeEach(async () => {
  scene = await Scene.open(() => openEmptied(url));
  gone = await openAs("gone host", url);
  goneNo = await gone.hosts.ensure("gone host", startAt);
  await gone.shared!.beat({ ...beatOf({ no: goneNo, id: "gone host", facts: plainHost }), seenAt: startAt });
  scene.now = startAt + day;
  worker = await scene.worker("worker00000001");
  reads = new Connections(url, 1);
});
afterEach(async () => {
  await gone.close();
  await reads.close();
  await scene.end();
});

const forget = () => scene.stores.shared!.forgetSilent(startAt);
const idsIn = async (table: "host" | "server") =>
  (await reads.read<{ id: string }>(`SELECT id FROM ${table} ORDER BY id`, [])).map(({ id }) => id);
const hosts = () => idsIn("host");
const servers = () => idsIn("server");
/** How many tally rows belong to this server. */
const lanesOf = async ({ shared }: Stores) => {
  const counted = "SELECT count(*)::int AS n FROM tally WHERE lane / 100 = $1";
  return (await reads.read<{ n: number }>(counted, [shared!.serverNo]))[0]?.n;
};
/** A server's report that it is alive and tends one host. */
const beatOf = (host: HostReport): Beat => ({
  report: {},
  hosts: [host],
  now: scene.now,
  seenAt: scene.now,
  leases: [],
  untilAt: scene.now,
  signs: [],
});

/** Makes both hosts write counts. */
async function work(): Promise<void> {
  for (const { jobs } of [gone, scene.stores]) {
    await Promise.all(Array.from({ length: 5 }, () => jobs.submit(scene.newJob())));
    for (const { id } of (
      await jobs.take({ endpointNo: scene.endpointNo, asks: [{ workerNo: worker, count: 3 }], now: scene.now })
    ).jobs)
      await jobs.settle({
        endpointNo: scene.endpointNo,
        jobId: id,
        workerNo: worker,
        verdict: { status: "COMPLETED", output: undefined },
        now: scene.now,
      });
  }
}

describe("Servers and hosts that have not been seen for a day", () => {
  it("are forgotten, and their counts stay", async () => {
    await work();
    const tally = await scene.tally();
    expect(await lanesOf(gone)).toBeGreaterThan(0);
    await forget();
    expect([await hosts(), await servers(), await lanesOf(gone)]).toEqual([["host"], ["host"], 0]);
    expect(await scene.tally()).toEqual(tally);
    await work();
    await forget();
    expect(await scene.stores.tallies.recount(scene.endpointNo)).toEqual(await scene.tally());
    expect(await scene.tally()).toMatchObject({ waiting: 2 * tally.waiting, completed: 2 * tally.completed });
  });

  it("are kept while a worker of theirs lives", async () => {
    const { no } = await scene.stores.workers.create({
      id: "worker00000002",
      endpointNo: scene.endpointNo,
      version: 1,
      hostNo: goneNo,
      createdAt: startAt,
    });
    await forget();
    expect(await hosts()).toEqual(["gone host", "host"]);
    await scene.stores.workers.change(no, { ...workerChanges.end, endedAt: scene.now });
    await forget();
    expect(await hosts()).toEqual(["host"]);
  });

  it("are added again when they return", async () => {
    await forget();
    const facts = { ...plainHost, location: "CZ" };
    const heard = await gone.shared!.beat(beatOf({ no: goneNo, id: "gone host", facts }));
    expect(heard.hosts).toContainEqual({ ...facts, no: goneNo, seenAt: scene.now });
    expect(heard.servers).toContainEqual({ no: gone.shared!.serverNo, seenAt: scene.now });
    await work();
    await forget();
    expect([await hosts(), await servers()]).toEqual([
      ["gone host", "host"],
      ["gone host", "host"],
    ]);
    expect(await lanesOf(gone)).toBeGreaterThan(0);
  });

  it("do not include servers that are still starting, or that left a moment ago", async () => {
    const other = await openAs("new host", url);
    await scene.stores.shared!.leave({
      hostNos: [await scene.stores.hosts.ensure("host", scene.now)],
      seenAt: scene.now - 1,
    });
    await forget();
    expect([await hosts(), await servers()]).toEqual([["host"], ["host", "new host"]]);
    await other.close();
  });

  it("leave a cluster's host to the server that tends it now", async () => {
    const no = await gone.hosts.ensure("cluster", startAt);
    const cluster = { no, id: "cluster", facts: plainHost };
    await scene.stores.shared!.beat(beatOf(cluster));
    await forget();
    expect([await hosts(), await servers()]).toEqual([["cluster", "host"], ["host"]]);
  });
});
