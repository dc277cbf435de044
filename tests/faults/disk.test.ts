import { existsSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { openDatabase } from "../../packages/server/src/stores/sqlite/driver.js";
import { expectRefusal, reach, statusOf, submit } from "../e2e/wire.js";
import { call, until } from "../harness.js";
import { JournaledServer, wal } from "./disk/journaled-server.js";
import { auditCuts, randomPoints, recordsOf } from "./disk/power-cuts.js";
import { isAlive } from "./machine/processes.js";
import { seeded } from "./random.js";

const seed = Number(process.env.MILLRACE_TEST_SEED ?? Math.floor(Math.random() * 1_000_000_000));
const MB = 2 ** 20;

let journaled: JournaledServer;
beforeAll(() => console.log(`The seed is ${seed}: MILLRACE_TEST_SEED=${seed} repeats its choices.`));
beforeEach(async () => {
  journaled = new JournaledServer(seed);
  await journaled.start();
});
afterEach(() => journaled?.end());

const post = (path: string, body?: unknown) => call(journaled.server, "POST", `/v2/${journaled.endpoint}${path}`, body);
const run = () => post("/run", { input: {} });

describe("a sync that fails", () => {
  it("in a commit reports no success, ends the process, and is not retried", { timeout: 180_000 }, async () => {
    const { server, disk } = journaled;
    await journaled.load(40);
    const before = recordsOf(disk).length;
    disk.failSyncs(-1, wal);
    const answers = await Promise.allSettled(Array.from({ length: 10 }, run));
    for (const answer of answers) if (answer.status === "fulfilled") expect(answer.value.status).toBe(503);
    await until(() => !isAlive(server.pid), 60_000);
    expect(await server.stop()).toBe(1);
    expect(server.log()).toMatch(/The disk failed, nothing more is accepted: .*Start the service again\./);
    const syncs = recordsOf(disk).filter(({ kind, name }) => name === wal && /sync/.test(kind));
    expect(syncs.map(({ kind }) => kind).filter((kind) => kind === "failed sync")).toHaveLength(1);
    expect(syncs.at(-1)?.kind).toBe("failed sync");

    disk.failSyncs(0);
    await journaled.restart();
    await journaled.load(40);
    await server.stop();
    // Data that the failed sync did not write may never reach the disk, though the files seem to contain it.
    const random = seeded(seed + 1);
    const records = recordsOf(disk);
    expect(await auditCuts(records, randomPoints(random, records, 40, before), random)).toEqual([]);
  });

  it("in a checkpoint loses nothing, and ends the process", { timeout: 180_000 }, async () => {
    const { server, disk } = journaled;
    disk.failSyncs(1, "millrace.db");
    while (isAlive(server.pid)) await Promise.allSettled(Array.from({ length: 50 }, run));
    expect(await server.stop()).toBe(1);
    expect(server.log()).toMatch(/The disk failed, nothing more is accepted/);
    disk.failSyncs(0);
    await journaled.restart();
    await journaled.load(40);
    await server.stop();
    const random = seeded(seed + 2);
    const records = recordsOf(disk);
    const failedAt = records.findIndex(({ kind }) => kind === "failed sync");
    expect(failedAt).toBeGreaterThan(0);
    expect(await auditCuts(records, randomPoints(random, records, 40, failedAt), random)).toEqual([]);
  });
});

describe("a disk with no room", () => {
  it("for new jobs refuses them, while accepted ones continue", { timeout: 120_000 }, async () => {
    const { disk } = journaled;
    await expectOnlyNewJobsRefused(() => disk.setRoom(40 * MB));
    expect(existsSync(join(disk.dataDir, "reserve"))).toBe(true);
    await expectHealed();
  });

  it("at all releases its reserve for accepted jobs, and refuses new ones", { timeout: 120_000 }, async () => {
    const { disk } = journaled;
    await expectOnlyNewJobsRefused(() => disk.setRoom(0));
    expect(existsSync(join(disk.dataDir, "reserve"))).toBe(false);
    await expectHealed();
    await until(() => existsSync(join(disk.dataDir, "reserve")));
  });
});

/** Fills the disk while jobs are running: new jobs must be refused, and accepted jobs must end as usual. */
async function expectOnlyNewJobsRefused(fill: () => void): Promise<void> {
  const { server, endpoint, disk } = journaled;
  const worker = await journaled.worker();
  const taken = await submit(server, endpoint);
  const next = await submit(server, endpoint);
  const cancelled = await submit(server, endpoint);
  const purged = await submit(server, endpoint);
  const expiring = await submit(server, endpoint, {}, { policy: { ttl: 10_000 } });
  const take = async () => (await worker.take({ inProgress: true })).body;
  expect((await take()).id).toBe(taken);

  fill();
  // The server checks the free space once a second.
  const refused = await until(async () => {
    const reply = await run();
    return reply.status !== 200 && reply;
  });
  expectRefusal(refused, 507, /disk .* full; free some space/);
  expect(refused.body.code).toBe("STORAGE_FULL");
  expectRefusal(await post("/runsync", { input: {} }), 507);

  const output = "x".repeat(MB / 4);
  expect((await worker.chunk(taken, { output: "chunk" })).status).toBe(200);
  expect((await worker.done(taken, { output })).status).toBe(200);
  expect(await statusOf(server, endpoint, taken)).toMatchObject({ status: "COMPLETED", output });
  expect((await take()).id).toBe(next);
  expect((await worker.done(next, { error: "raised" })).status).toBe(200);
  expect((await statusOf(server, endpoint, next)).status).toBe("FAILED");
  expect((await post(`/cancel/${cancelled}`)).body.status).toBe("CANCELLED");
  expect((await post("/purge-queue")).status).toBe(200);
  expect((await statusOf(server, endpoint, purged)).status).toBe("CANCELLED");
  const db = openDatabase(join(disk.dataDir, "millrace.db"), { readOnly: true });
  try {
    await until(() => db.prepare("SELECT count(*) AS n FROM job WHERE id = ?").get(expiring).n === 0, 60_000);
  } finally {
    db.close();
  }
  expectRefusal(await run(), 507);
}

/** Frees the disk's space again, and expects the same process to accept new jobs. */
async function expectHealed(): Promise<void> {
  const { server, endpoint, disk } = journaled;
  const { pid } = server;
  disk.setRoom(undefined);
  const made = await until(async () => {
    const reply = await run();
    return reply.status === 200 && reply;
  });
  const worker = await journaled.worker();
  expect((await worker.take()).body.id).toBe(made.body.id);
  expect((await worker.done(made.body.id, { output: "done" })).status).toBe(200);
  await reach(server, endpoint, made.body.id, "COMPLETED");
  expect([server.pid, isAlive(pid)]).toEqual([pid, true]);
}
