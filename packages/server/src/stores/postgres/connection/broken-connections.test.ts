import pg from "pg";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { startPostgres, type TestPostgres } from "../../../../../../scripts/postgres.mjs";
import { Refusal } from "../../../errors.js";
import { limits } from "../../../limits/index.js";
import type { Stores } from "../../../store/index.js";
import { keepBreaking, makeDatabase, openAs, openEmptied, waitingProcess } from "../../contracts/postgres-fixture.js";
import { startProxy, type TestProxy } from "../../contracts/proxy-fixture.js";
import { completed, day, idsOf, Scene } from "../../contracts/scene.js";

let server: TestPostgres;
let proxy: TestProxy;
let url: string;
let scene: Scene;
/** A server that reaches its database through the proxy. */
let stores: Stores;
let worker: number;

beforeAll(async () => {
  server = await startPostgres({ settings: { fsync: "off", deadlock_timeout: "100ms" } });
  url = await makeDatabase(server, "broken");
  proxy = await startProxy(server.port);
});
afterAll(async () => {
  await proxy.end();
  await server.end();
});
beforeEach(async () => {
  scene = await Scene.open(() => openEmptied(url));
  worker = await scene.worker("worker00000001");
  stores = await openAs("host behind a proxy", url.replace(`:${server.port}/`, `:${proxy.port}/`));
});
afterEach(async () => {
  await stores.close();
  await scene.end();
});

const times = (count: number) => Array.from({ length: count }, (_, n) => n);

async function countsHold(): Promise<void> {
  const tally = await scene.tally();
  expect(await scene.stores.tallies.recount(scene.endpointNo)).toEqual(tally);
}

/** Makes every statement that writes this table wait in the database, until the returned function is called. */
async function hold(table: string): Promise<() => Promise<void>> {
  const client = new pg.Client(url);
  await client.connect();
  await client.query(`BEGIN; LOCK TABLE ${table} IN SHARE MODE`);
  return async () => {
    await client.query("COMMIT");
    await client.end();
  };
}

/**
 * Breaks the connection of a call: either before the answer to a statement that contains `text`, or while its statement
 * still waits in the database for `table`. In the second case the call is sent again while the first may still be
 * committed.
 */
async function lost<T>(when: string, text: string, table: string, call: () => Promise<T>): Promise<T> {
  const before = proxy.cuts();
  if (when === "before its answer") {
    proxy.cutAnswerTo((bytes) => bytes.includes(text));
    const result = await call();
    expect(proxy.cuts()).toBe(before + 1);
    return result;
  }
  const release = await hold(table);
  const result = call();
  const former = await waitingProcess(url);
  proxy.cutAll();
  await waitingProcess(url, former);
  await release();
  expect(proxy.cuts()).toBeGreaterThan(before);
  return result;
}

describe.each(["before its answer", "while it runs"])("A call whose connection breaks %s", (when) => {
  it("stores a job once", async () => {
    const job = scene.newJob();
    expect(await lost(when, job.id, "job_input", () => stores.jobs.submit(job))).toEqual({ kind: "submitted" });
    expect(idsOf(await scene.take(worker, 5))).toEqual([job.id]);
    await countsHold();
  });

  it("stores a job with a key once", async () => {
    const idempotency = { keyHash: "key", bodyHash: "body", route: "run", expiresAt: scene.now + day };
    const job = scene.newJob({ idempotency });
    expect(await lost(when, job.id, "job_input", () => stores.jobs.submit(job))).toEqual({ kind: "submitted" });
    expect(await stores.jobs.submit(scene.newJob({ idempotency }))).toMatchObject({
      kind: "known",
      record: { jobId: job.id },
    });
    expect(idsOf(await scene.take(worker, 5))).toEqual([job.id]);
    await countsHold();
  });

  it("returns the settled job", async () => {
    const id = await scene.jobIn("IN_PROGRESS", worker, { webhook: "https://example.com/" });
    const settle = () =>
      stores.jobs.settle({
        endpointNo: scene.endpointNo,
        jobId: id,
        workerNo: worker,
        verdict: completed('"mine"'),
        now: scene.now + 7,
      });
    expect(await lost(when, id, "job_output", settle)).toEqual({
      id,
      status: "COMPLETED",
      delivery: true,
      delayMs: 0,
      executionMs: 7,
    });
    expect((await scene.job(id)).output).toBe('"mine"');
    expect(await scene.deliveries()).toHaveLength(1);
    expect(await scene.tally()).toMatchObject({ running: 0, completed: 1 });
    await countsHold();
  });

  it("hands out the jobs it took", async () => {
    const ids = await scene.submitMany(5);
    const now = scene.now + 123_456;
    const take = () => stores.jobs.take({ endpointNo: scene.endpointNo, asks: [{ workerNo: worker, count: 3 }], now });
    const { jobs } = await lost(when, `${now}`, "tally", take);
    expect(jobs.map(({ id, starts, takenAt }) => ({ id, starts, takenAt }))).toEqual(
      ids.slice(0, 3).map((id) => ({ id, starts: 1, takenAt: now })),
    );
    expect(await scene.tally()).toMatchObject({ waiting: 2, running: 3 });
    await countsHold();
  });

  it("does not hand out again a job that went to the same worker in the same millisecond", async () => {
    const ids = await scene.submitMany(3);
    const now = scene.now + 123_456;
    const take = () => stores.jobs.take({ endpointNo: scene.endpointNo, asks: [{ workerNo: worker, count: 1 }], now });
    expect(idsOf((await take()).jobs)).toEqual([ids[0]]);
    expect(idsOf((await lost(when, `${now}`, "tally", take)).jobs)).toEqual([ids[1]]);
  });

  it("appends chunks once", async () => {
    const id = await scene.jobIn("IN_PROGRESS", worker);
    const append = () =>
      stores.chunks.append({
        endpointNo: scene.endpointNo,
        jobId: id,
        workerNo: worker,
        chunks: [{ output: "1" }, { output: "2" }],
      });
    expect(await lost(when, id, "chunk", append)).toBe(true);
    const { no } = await scene.job(id);
    const chunks = await scene.stores.chunks.read({ jobNo: no, fromIndex: 0, bytesMax: 100 });
    expect(chunks.map(({ output }) => output)).toEqual(["1", "2"]);
  });

  it("appends chunks of many megabytes once", async () => {
    const id = await scene.jobIn("IN_PROGRESS", worker);
    const output = `"${"x".repeat(limits.storedPieceBytes - 2)}"`;
    const append = () =>
      stores.chunks.append({
        endpointNo: scene.endpointNo,
        jobId: id,
        workerNo: worker,
        chunks: [{ output: "1" }, { output }, { output: "3" }],
      });
    expect(await lost(when, "COMMIT", "chunk", append)).toBe(true);
    const { no } = await scene.job(id);
    const chunks = await scene.stores.chunks.read({ jobNo: no, fromIndex: 0, bytesMax: 2 * limits.storedPieceBytes });
    expect(chunks.map(({ output }) => output.length)).toEqual([1, output.length, 1]);
  });

  it("records progress", async () => {
    const id = await scene.jobIn("IN_PROGRESS", worker);
    const note = () =>
      stores.jobs.progress({ endpointNo: scene.endpointNo, jobId: id, workerNo: worker, progress: '"half"' });
    expect(await lost(when, id, "job_output", note)).toBe(true);
    expect((await scene.job(id)).progress).toBe('"half"');
  });

  it.each([
    { by: "giveBack", excused: false, status: "IN_QUEUE", tally: { waiting: 1, retried: 1 } },
    { by: "cancel", status: "CANCELLED", tally: { waiting: 0, failed: 0 } },
    { by: "timeOut", error: "too slow", status: "TIMED_OUT", tally: { failed: 1 } },
    { by: "fail", error: "lost", status: "FAILED", tally: { failed: 1 } },
  ] as const)("reports that it was applied: $by", async ({ status, tally, ...change }) => {
    const id = await scene.jobIn("IN_PROGRESS", worker);
    const job = await scene.job(id);
    const at = scene.now + 234_567;
    const changed = await lost(when, "COMMIT", "job_event", () => stores.jobs.change({ job, change, now: at }));
    expect(changed).toMatchObject({ id, status });
    expect((await scene.job(id)).status).toBe(status);
    expect(await scene.tally()).toMatchObject({ running: 0, ...tally });
    await countsHold();
  });

  it("reports a retried job", async () => {
    const id = await scene.jobIn("FAILED", worker);
    const retry = { job: await scene.job(id), change: { by: "retry" }, now: scene.now + 234_567 } as const;
    const changed = await lost(when, "COMMIT", "job_event", () => stores.jobs.change(retry));
    expect(changed).toMatchObject({ id, status: "IN_QUEUE" });
    expect(idsOf(await scene.take(worker, 2))).toEqual([id]);
    await countsHold();
  });
});

describe("A database that breaks connections again and again", () => {
  it("loses and duplicates nothing, and callers see at most that it is busy", { timeout: 120_000 }, async () => {
    const outcomes: { submitted: string[]; taken: Map<string, number>; settled: string[]; refused: number } = {
      submitted: [],
      taken: new Map(),
      settled: [],
      refused: 0,
    };
    let over = false;
    const breaking = keepBreaking(url);
    const tried = async <T>(call: Promise<T>): Promise<T | undefined> => {
      try {
        return await call;
      } catch (error) {
        expect(error).toBeInstanceOf(Refusal);
        expect((error as Refusal).code).toBe("UNAVAILABLE");
        outcomes.refused++;
        return undefined;
      } finally {
        breaking.ended();
      }
    };
    const submitters = times(20).map(async () => {
      for (let n = 0; n < 60; n++) {
        const job = scene.newJob();
        const made = await tried(stores.jobs.submit(job));
        if (made) expect(made).toEqual({ kind: "submitted" });
        if (made) outcomes.submitted.push(job.id);
      }
    });
    let isDry = false;
    const takers = times(4).map(async (n) => {
      const workerNo = await scene.worker(`taker0000000${n}`);
      while (!isDry) {
        const turn = await tried(
          stores.jobs.take({ endpointNo: scene.endpointNo, asks: [{ workerNo, count: 10 }], now: scene.now + n }),
        );
        await Promise.all(
          (turn?.jobs ?? []).map(async (job) => {
            outcomes.taken.set(job.id, (outcomes.taken.get(job.id) ?? 0) + 1);
            const appended = await tried(
              stores.chunks.append({
                endpointNo: scene.endpointNo,
                jobId: job.id,
                workerNo,
                chunks: [{ output: "0" }, { output: "1" }],
              }),
            );
            expect(appended).not.toBe(false);
            const last = completed(`"${job.id}"`);
            const settled = await tried(
              stores.jobs.settle({
                endpointNo: scene.endpointNo,
                jobId: job.id,
                workerNo,
                verdict: last,
                now: scene.now + n,
              }),
            );
            expect(settled?.status).toBe("COMPLETED");
            outcomes.settled.push(job.id);
          }),
        );
        scene.now += 10;
        if (over && turn?.jobs.length === 0) isDry = true;
      }
    });
    await Promise.all(submitters);
    over = true;
    const breaks = await breaking.stop();
    console.log(`${breaks} breaks, ${outcomes.refused} calls refused`);
    expect(breaks).toBeGreaterThan(1);
    await Promise.all(takers);
    expect(outcomes.submitted).toHaveLength(1_200 - outcomes.refused);
    expect([...outcomes.taken.keys()].sort()).toEqual([...outcomes.submitted].sort());
    expect([...outcomes.taken.values()].every((count) => count === 1)).toBe(true);
    expect(await scene.tally()).toMatchObject({ waiting: 0, running: 0, completed: outcomes.submitted.length });
    await countsHold();
    const { jobs } = await scene.stores.reader.list({ endpointNo: scene.endpointNo, limit: 2_000, now: scene.now });
    for (const job of jobs) {
      expect(job.output).toBe(`"${job.id}"`);
      const chunks = await scene.stores.chunks.read({ jobNo: job.no, fromIndex: 0, bytesMax: 1_000 });
      expect(chunks.map(({ index, output }) => [index, output])).toEqual([
        [0, "0"],
        [1, "1"],
      ]);
    }
  });
});
