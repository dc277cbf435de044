import { beforeEach, describe, expect, it } from "vitest";
import { limits } from "../limits/index.js";
import { plainRelease, workerChanges } from "../testing/facts-fixture.js";
import { Registry } from "./registry.js";
import {
  counted,
  database,
  holdNext,
  made,
  named,
  now,
  openServers,
  others,
  ours,
  passTime,
  revise,
  startAt,
  stores,
  worker,
  written,
} from "./registry-fixture.js";

openServers();

describe("A server that refreshes", () => {
  it("sees what another server has made, saved and removed", async () => {
    const endpoint = await others.createEndpoint(made);
    const template = await others.createTemplate({ id: "t", ownerNo: 1, settings: {} as never });
    const live = await others.createWorker({ ...worker, endpointNo: endpoint.no });
    expect(await ours.known("endpoint", made.id, () => ours.endpoint(made.id))).toMatchObject({
      settings: { name: "first" },
    });
    await others.saveEndpoint(endpoint, named("second"), plainRelease);
    await others.changeWorker(live, workerChanges.close);
    await others.removeTemplate(template);
    await ours.refresh();
    expect(ours.endpoint(made.id)).toMatchObject({ settings: { name: "second" }, version: 2 });
    expect(ours.worker(worker.id)?.row.wanted).toBe("closed");
    expect(ours.templates()).toEqual([]);
  });

  describe("for an unknown id", () => {
    /** How often each store was read, by a server over `counted` stores. */
    let asked: string[];
    let counting: Registry;
    beforeEach(async () => {
      asked = [];
      counting = new Registry(counted(stores, asked), { now: () => now });
      await counting.load(now);
      asked.length = 0;
    });
    const know = (id: string) => counting.known("key", id, () => counting.key(id));

    it("queries only that id, once for all concurrent callers, and reads nothing else", async () => {
      const garbage = Array.from({ length: 100 }, (_, n) => know(`garbage${n}`));
      expect(new Set(await Promise.all(garbage))).toEqual(new Set([undefined]));
      await Promise.all(
        ["endpoint", "volume", "worker"].map((kind) => counting.known(kind as "endpoint", "x", () => {})),
      );
      expect(asked).toEqual(["access.existing", "endpoints.existing", "volumes.existing", "workers.existing"]);
    });

    it("never queries an invalid id", async () => {
      for (const id of ["", "a\0b", "é", "x".repeat(129), "a b"]) expect(await know(id)).toBeUndefined();
      expect(asked).toEqual([]);
    });

    it("reads everything once the id exists", async () => {
      await others.createEndpoint(made);
      const finding = [1, 2].map(() => counting.known("endpoint", made.id, () => counting.endpoint(made.id)));
      expect(await Promise.all(finding)).toMatchObject([{ id: made.id }, { id: made.id }]);
      expect(asked.filter((verb) => verb === "endpoints.all")).toHaveLength(1);
    });

    it("tells each caller that the database is away, and queries again for the next caller", async () => {
      const away = { ...stores, access: { ...stores.access, existing: () => Promise.reject(new Error("away")) } };
      const alone = new Registry(away, { now: () => now });
      for (let n = 0; n < 2; n++) await expect(alone.known("key", "a", () => {})).rejects.toThrow("away");
    });
  });

  it("sees that an endpoint was deleted even if none of its rows is left", async () => {
    await others.createEndpoint(made);
    await ours.refresh();
    await others.removeEndpoint(others.endpoint(made.id)!, now);
    await ours.refresh();
    expect(ours.endpoint(made.id)?.deletedAt).toBe(now);
  });

  it("does not undo another server's decision about a worker, and applies it at once", async () => {
    const { no } = await others.createEndpoint(made);
    const theirs = await others.createWorker({ ...worker, endpointNo: no });
    await ours.refresh();
    await others.changeWorker(theirs, { by: "stop", stopAt: now, killAt: now + 1, why: "theirs" });
    const live = ours.worker(worker.id)!;
    expect(await ours.changeWorker(live, { by: "close", closedAt: now, why: "ours" })).toBe(false);
    expect(live.row).toMatchObject({ wanted: "stopped", stopAt: now, killAt: now + 1, why: "theirs" });
    expect(live.row.closedAt).toBeUndefined();
    expect(await database.workers.find(worker.id)).toMatchObject({ wanted: "stopped", why: "theirs" });
  });

  it("counts a change as made if it was stored already and then sent again over a new connection", async () => {
    const { no } = await ours.createEndpoint(made);
    const live = await ours.createWorker({ ...worker, endpointNo: no });
    const { change } = stores.workers;
    stores.workers.change = async (...asked) => {
      await change(...asked);
      return change(...asked);
    };
    expect(await ours.changeWorker(live, { by: "close", closedAt: now, why: "ours" })).toBe(true);
    expect(live.row).toMatchObject({ wanted: "closed", closedAt: now, why: "ours" });
  });

  it("writes its decisions about a worker in the order in which it makes them", async () => {
    const { no } = await ours.createEndpoint(made);
    const live = await ours.createWorker({ ...worker, endpointNo: no });
    const writing = holdNext("workers.change", "before");
    const paused = ours.changeWorker(live, { by: "pause", pausedAt: now, why: "" });
    await writing.reached;
    const resumed = ours.changeWorker(live, { by: "resume", resumedAt: now + 1, pausedMs: 1, why: "" });
    writing.go();
    expect(await Promise.all([paused, resumed])).toEqual([true, true]);
    expect(await database.workers.find(worker.id)).toMatchObject({ wanted: "running", resumedAt: now + 1 });
  });

  it("sees that a worker has ended, however long ago it last refreshed", async () => {
    const { no } = await others.createEndpoint(made);
    const live = await others.createWorker({ ...worker, endpointNo: no });
    await ours.refresh();
    expect(ours.workersOf(no)).toHaveLength(1);
    await others.changeWorker(live, { ...workerChanges.end, endedAt: now });
    passTime(3_600_000);
    await ours.refresh();
    expect(ours.workersOf(no)).toEqual([]);
    expect(ours.worker(worker.id)?.dismissed.aborted).toBe(true);
  });

  it("reads all workers rarely, and in between only written ones", async () => {
    const { no } = await others.createEndpoint(made);
    const live = await others.createWorker({ ...worker, endpointNo: no });
    await ours.refresh();
    const reading = holdNext("workers.all", "before");
    let isAllRead = false;
    void reading.reached.then(() => {
      isAllRead = true;
      reading.go();
    });
    await others.changeWorker(live, workerChanges.close);
    await ours.refresh();
    expect(ours.worker(worker.id)?.row.wanted).toBe("closed");
    expect(isAllRead).toBe(false);
    passTime(limits.allWorkersReadMs);
    await ours.refresh();
    expect(isAllRead).toBe(true);
  });

  it("never sees a worker before its endpoint", async () => {
    await ours.refresh();
    const { no } = await others.createEndpoint(made);
    await others.createWorker({ ...worker, endpointNo: no });
    const reading = holdNext("endpoints.all", "after");
    const refreshed = ours.refresh();
    await reading.reached;
    for (let turn = 0; turn < 5; turn++) await new Promise(setImmediate);
    expect([ours.endpoint(made.id), ours.worker(worker.id)]).toEqual([undefined, undefined]);
    reading.go();
    await refreshed;
    expect([ours.endpoint(made.id)?.no, ours.worker(worker.id)?.row.endpointNo]).toEqual([no, no]);
  });

  it("rereads a row that it could not write, though nothing has changed in the store", async () => {
    const endpoint = await others.createEndpoint(made);
    revise({ endpoint: "1" });
    await ours.refresh();
    const writing = holdNext("endpoints.noteStart", "before");
    const said = { failedStarts: 1, at: now, verdict: "it broke" };
    const noted = ours.noteStart(ours.endpointByNo(endpoint.no)!, 1, said);
    await writing.reached;
    expect(ours.endpointByNo(endpoint.no)?.failedStarts).toBe(1);
    writing.fail(new Error("the database is away"));
    await expect(noted).rejects.toThrow("away");
    await ours.refresh();
    expect(ours.endpointByNo(endpoint.no)).toMatchObject({ failedStarts: 0, verdict: undefined });
  });

  it("sees another server's change beside its own, even if its own hid that at first", async () => {
    const { no } = await others.createEndpoint(made);
    const theirs = await others.createWorker({ ...worker, endpointNo: no });
    await ours.refresh();
    await others.changeWorker(theirs, workerChanges.close);
    const reading = holdNext("shared.workersSince", "after");
    const refreshed = ours.refresh();
    await reading.reached;
    const writing = holdNext("workers.change", "before");
    const patched = ours.changeWorker(ours.worker(worker.id)!, { by: "ping", hasPinged: true });
    await writing.reached;
    reading.go();
    await refreshed;
    expect(ours.worker(worker.id)?.row.wanted).toBe("running");
    writing.go();
    await patched;
    written.length = 2; // the server's own writes are no reason to read again
    await ours.refresh();
    expect(ours.worker(worker.id)?.row).toMatchObject({ wanted: "closed", hasPinged: true });
  });

  it("reads once for all concurrent callers, in a read that begins after their calls", async () => {
    const reading = holdNext("endpoints.all", "after");
    const first = ours.refresh();
    await reading.reached;
    await others.createEndpoint(made);
    const next = [ours.refresh(), ours.refresh()];
    expect(next[0]).toBe(next[1]);
    reading.go();
    await first;
    expect(ours.endpoint(made.id)).toBeUndefined();
    await next[0];
    expect(ours.endpoint(made.id)).toBeDefined();
  });
});

describe("A server's report about a worker", () => {
  it("is reported once, even while the worker's poll is held", async () => {
    const { no } = await ours.createEndpoint(made);
    const live = await ours.createWorker({ ...worker, endpointNo: no });
    live.polls.add({ arrivedAt: startAt });
    expect(ours.signs(startAt)).toMatchObject([{ workerNo: live.row.no, seenAt: startAt, polledAt: startAt }]);
    expect(ours.signs(startAt + 1)).toEqual([]);
    live.polledAt = startAt + 20_000;
    expect(ours.signs(startAt + 19_000)).toMatchObject([{ polledAt: startAt + 20_000 }]);
  });
});
