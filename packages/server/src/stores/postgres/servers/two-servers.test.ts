import pg from "pg";
import { describe, expect, it, vi } from "vitest";
import type { Change } from "../../../domain/jobs/job.js";
import type { TakenJob } from "../../../store/index.js";
import { completed, day, idsOf, startAt } from "../../contracts/scene.js";
import { countsHold, on, openTwoServers, scene, submit, times, url, workers } from "./two-servers-fixture.js";

openTwoServers();

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
        const turns = times(3).map(() =>
          on(n).jobs.take({ endpointNo: scene.endpointNo, asks: [{ workerNo, count: 7 }], now: scene.now }),
        );
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
      order.push(...idsOf((await on(n).jobs.take({ endpointNo: scene.endpointNo, asks, now: scene.now })).jobs));
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
              .jobs.change({ job, change, now: scene.now })
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
        ...workers.map((workerNo, n) =>
          on(n).jobs.take({ endpointNo: scene.endpointNo, asks: [{ workerNo, count: 10 }], now: scene.now }),
        ),
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
    const swept = await Promise.all(times(8).map((n) => on(n).jobs.sweep({ now: scene.now, limit: 20 })));
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
});
