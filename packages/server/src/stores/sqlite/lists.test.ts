import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { limits } from "../../limits/index.js";
import { withTurns } from "../../testing/turns-fixture.js";
import { Scene } from "../contracts/scene.js";
import { openMemory } from "../contracts/sqlite-fixture.js";

let scene: Scene;
beforeEach(async () => {
  scene = await Scene.open(openMemory);
});
afterEach(() => scene.end());

describe("A list of a queue", () => {
  it("by a rare state is found over many turns, complete and in order", async () => {
    const worker = await scene.worker("worker00000001");
    const count = 2.5 * limits.searchedRows;
    const old = await scene.submit();
    await scene.take(worker);
    await Promise.all(Array.from({ length: count }, () => scene.submit()));
    const { reader } = scene.stores;
    const list = (query: object) => reader.list({ endpointNo: scene.endpointNo, limit: 1, ...query, now: scene.now });
    let found: Awaited<ReturnType<typeof list>> | undefined;
    const { waits } = await withTurns(async () => (found = await list({ status: "IN_PROGRESS" })));
    expect(waits).toBe(4);
    expect([found?.jobs.map(({ id }) => id), found?.more]).toEqual([[old], false]);
    const waiting = await list({ status: "IN_QUEUE", limit: 3 });
    expect([waiting.jobs.length, waiting.more]).toEqual([3, true]);
    const places = waiting.jobs.map(({ no }) => no);
    expect(places).toEqual([...places].sort((a, b) => b - a));
    expect((await list({ status: "COMPLETED" })).jobs).toEqual([]);
  });

  it("passes jobs that have expired but are still stored over many turns, and is complete", async () => {
    const submit = (count: number, ttlMs: number) => scene.submitMany(count, { ttlEndAt: scene.now + ttlMs });
    const [oldest] = await submit(1, 3_600_000);
    await submit(2.5 * limits.searchedRows, 10_000);
    const [older, newest] = await submit(2, 3_600_000);
    scene.now += 10_001;
    const list = (limit: number, beforeNo = Number.MAX_SAFE_INTEGER) =>
      scene.stores.reader.list({ endpointNo: scene.endpointNo, limit, beforeNo, now: scene.now });
    const first = await list(2);
    expect([first.jobs.map(({ id }) => id), first.more]).toEqual([[newest, older], true]);
    let rest: Awaited<ReturnType<typeof list>> | undefined;
    const { waits } = await withTurns(async () => (rest = await list(2, first.jobs[1]?.no)));
    expect([rest?.jobs.map(({ id }) => id), rest?.more]).toEqual([[oldest], false]);
    expect(waits).toBe(4);
  });

  it("for many readers at once takes turns", async () => {
    await Promise.all(Array.from({ length: 200 }, () => scene.submit()));
    const list = () => scene.stores.reader.list({ endpointNo: scene.endpointNo, limit: 100, now: scene.now });
    const readers = 40;
    const { waits } = await withTurns(() => Promise.all(Array.from({ length: readers }, list)));
    expect(waits).toBe(readers);
  });

  it("by a state skips jobs that have left it since they were found, and continues after them", async () => {
    const worker = await scene.worker("worker00000001");
    const ids = [];
    for (let n = 0; n < 6; n++) ids.push(await scene.submit());
    const newest = await Promise.all(ids.slice(3).map((id) => scene.job(id)));
    const listing = scene.stores.reader.list({
      endpointNo: scene.endpointNo,
      limit: 2,
      status: "IN_QUEUE",
      now: scene.now,
    });
    // The search is over, but its page has not been read yet.
    for (const job of newest) await scene.stores.jobs.change({ job, change: { by: "cancel" }, now: scene.now });
    const { jobs, more } = await listing;
    expect(jobs.every(({ status }) => status === "IN_QUEUE")).toBe(true);
    expect([jobs.length > 0, more]).toEqual([true, true]);
    expect(worker).toBeGreaterThan(0);
  });

  it("is not searched for a client that has disconnected", async () => {
    await Promise.all(Array.from({ length: 1.5 * limits.searchedRows }, () => scene.submit()));
    const query = { limit: 1, status: "COMPLETED" as const, gone: { aborted: true } };
    const { waits } = await withTurns(() =>
      scene.stores.reader.list({ endpointNo: scene.endpointNo, ...query, now: scene.now }),
    );
    expect(waits).toBe(2); // and for an empty page
  });

  it("queries the positions of all its waiting jobs at once", async () => {
    const ids = await Promise.all(Array.from({ length: 20 }, () => scene.submit()));
    const jobs = await Promise.all(ids.map((id) => scene.job(id)));
    const position = (place: number, max: number) =>
      scene.stores.reader.position({ endpointNo: scene.endpointNo, place, max });
    const expected = jobs.map(({ place }) => jobs.filter((other) => other.place < place).length);
    expect(await Promise.all(jobs.map(({ place }) => position(place, 100)))).toEqual(expected);
    expect(await Promise.all(jobs.map(({ place }) => position(place, 5)))).toEqual(expected.map((n) => Math.min(n, 5)));
  });
});
