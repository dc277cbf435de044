import pg from "pg";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { startPostgres, type TestPostgres } from "../../../../../scripts/postgres.mjs";
import { limits } from "../../limits/index.js";
import { asAdmin, makeDatabase, openEmptied } from "../contracts/postgres-fixture.js";
import { idsOf, Scene } from "../contracts/scene.js";
import { code } from "../tables/job-state.js";

const dead = 25_000;

let server: TestPostgres;
let url: string;
let scene: Scene;
let worker: number;
let holder: pg.Client;

beforeAll(async () => {
  server = await startPostgres({ settings: { fsync: "off", autovacuum: "off" } });
  url = await makeDatabase(server, "floor");
});
afterAll(() => server.end());
beforeEach(async () => {
  scene = await Scene.open(() => openEmptied(url));
  worker = await scene.worker("worker00000001");
  holder = new pg.Client(url);
  await holder.connect();
});
afterEach(async () => {
  vi.restoreAllMocks();
  await holder.end();
  await scene.end();
});

/** An old snapshot, as a backup holds: until it ends, the index keeps its entries for taken jobs. */
async function holdSnapshot(): Promise<void> {
  await holder.query("BEGIN ISOLATION LEVEL REPEATABLE READ");
  await holder.query("SELECT count(*) FROM job");
}

/** Stores jobs that were taken and have ended, as after so many takes, a thousand in each statement. */
async function passJobs(count: number): Promise<void> {
  const { endpointNo, now } = scene;
  await asAdmin(
    url,
    `INSERT INTO job (no, endpoint_no, id, place, status, low_priority, created_at, queued_at, ttl_end_at, expires_at,
       execution_timeout_ms, retention_ms, has_webhook, keyed)
     SELECT p, ${endpointNo}, 'passed-' || p, p, ${code.IN_QUEUE}, 0, ${now}, ${now}, ${now} + 86400000, ${now} + 86400000, 600000, 1800000, 0, 0
     FROM (SELECT nextval('place') AS p FROM generate_series(1, ${count})) n;
     UPDATE job SET status = ${code.COMPLETED}, worker_no = ${worker}, taken_at = ${now}, finished_at = ${now}`,
  );
}

/** Lets time pass for code that measures it without the store's clock. */
function advance(ms: number): void {
  const real = performance.now.bind(performance);
  vi.spyOn(performance, "now").mockImplementation(() => real() + ms);
}

const take = async (count: number) => idsOf(await scene.take(worker, count));

/** How many pages a statement reads, which does not depend on the machine's load. */
async function pagesOf(floor: number): Promise<number> {
  const client = new pg.Client(url);
  await client.connect();
  await client.query("SET enable_seqscan = off");
  const { rows } = await client.query(
    `EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) SELECT no FROM job WHERE endpoint_no = ${scene.endpointNo} AND status = ${code.IN_QUEUE}
     AND place >= ${floor} ORDER BY place LIMIT 1`,
  );
  await client.end();
  const { Plan } = rows[0]["QUERY PLAN"][0];
  return Plan["Shared Hit Blocks"] + Plan["Shared Read Blocks"];
}

describe(`Beside an old snapshot, with ${dead.toLocaleString("en")} dead entries before the waiting jobs`, () => {
  beforeEach(async () => {
    await holdSnapshot();
    await passJobs(dead);
  });

  it("takes are served in order, and scan the dead entries once in ten seconds", async () => {
    const ids = await scene.submitMany(300);
    const taken: string[] = [];
    const times: number[] = [];
    while (taken.length < 300) {
      const began = performance.now();
      taken.push(...(await take(10)));
      times.push(performance.now() - began);
    }
    expect(taken).toEqual(ids);
    const [first = 0, ...rest] = times;
    const middle = rest.sort((a, b) => a - b)[Math.floor(rest.length / 2)] ?? 0;
    console.info(`a take from the beginning: ${first.toFixed(1)} ms; from the floor: ${middle.toFixed(1)} ms`);
  });

  it("they avoid the scan only by the floor", async () => {
    await scene.submitMany(3);
    const { place } = await scene.job("job-1");
    expect(await pagesOf(0)).toBeGreaterThan(50 * (await pagesOf(place)));
  });
});

describe("A take that starts from a floor", () => {
  it("first serves the jobs that were given back, and then the others in order", async () => {
    const ids = await scene.submitMany(40);
    expect(await take(20)).toEqual(ids.slice(0, 20));
    expect(await take(5)).toEqual(ids.slice(20, 25));
    for (const n of [3, 1, 22]) await scene.change(ids[n]!, { by: "giveBack", excused: true });
    expect(await take(4)).toEqual([ids[1], ids[3], ids[22], ids[25]]);
  });

  it("puts retried jobs at the end", async () => {
    const ids = await scene.submitMany(3);
    expect(await take(1)).toEqual([ids[0]]);
    await scene.settle(ids[0]!, worker, { status: "FAILED", error: "no", output: undefined });
    await scene.change(ids[0]!, { by: "retry" });
    expect(await take(3)).toEqual([ids[1], ids[2], ids[0]]);
  });

  /** Submissions that take their places first, and commit last. */
  async function lateSubmission(...ids: string[]) {
    const { endpointNo, now } = scene;
    await holder.query(`BEGIN;
      INSERT INTO job (no, endpoint_no, id, place, status, low_priority, created_at, queued_at, ttl_end_at, expires_at,
        execution_timeout_ms, retention_ms, has_webhook, keyed)
      SELECT p, ${endpointNo}, id, p, 0, 0, ${now}, ${now}, ${now} + 86400000, ${now} + 86400000, 600000, 1800000, 0, 0
      FROM (SELECT nextval('place') AS p, id FROM unnest('{${ids}}'::text[]) id) n;
      INSERT INTO job_input (job_no, body) SELECT no, '{}' FROM job WHERE id = ANY ('{${ids}}');
      INSERT INTO tally VALUES (${endpointNo}, 999999, ${ids.length}, ${ids.length}, 0, 0, 0, 0)`);
    return () => holder.query("COMMIT");
  }

  it("finds a job that was committed late when no other job is left", async () => {
    const commit = await lateSubmission("late");
    const ids = await scene.submitMany(4);
    expect(await take(1)).toEqual([ids[0]]);
    await commit();
    expect(await take(1)).toEqual([ids[1]]);
    expect((await take(5)).sort()).toEqual([ids[2], ids[3], "late"].sort());
    expect(await scene.stores.tallies.recount(scene.endpointNo)).toEqual(await scene.tally());
  });

  it("gets no more than it asked for if it looks a second time", async () => {
    const commit = await lateSubmission("late-1", "late-2");
    const ids = await scene.submitMany(3);
    expect(await take(1)).toEqual([ids[0]]);
    await commit();
    expect(await take(1)).toEqual([ids[1]]);
    expect(await take(2)).toEqual([ids[2], "late-1"]);
    expect(await take(2)).toEqual(["late-2"]);
  });

  it("goes back to jobs that another take had locked and not taken", async () => {
    const ids = await scene.submitMany(4);
    await holder.query("BEGIN");
    await holder.query("SELECT 1 FROM job WHERE id = $1 FOR UPDATE", [ids[0]]);
    expect(await take(1)).toEqual([ids[1]]);
    await holder.query("ROLLBACK");
    expect(await take(2)).toEqual([ids[0], ids[2]]);
  });

  it("finds a job that was committed late after ten seconds, even while others wait", async () => {
    const commit = await lateSubmission("late");
    const ids = await scene.submitMany(6);
    expect(await take(1)).toEqual([ids[0]]);
    await commit();
    expect(await take(1)).toEqual([ids[1]]);
    advance(limits.floorMs);
    expect(await take(2)).toEqual(["late", ids[2]]);
  });
});
