import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startServer, type TestServer, until } from "../harness.js";
import { makeRead, outputs } from "./stream-reader.js";
import { readEvents, type SentEvent } from "./wire.js";

let server: TestServer;
beforeAll(async () => {
  server = await startServer();
});
afterAll(() => server?.end());

describe.concurrent("server-sent events", () => {
  const chunkEvents = (events: readonly SentEvent[]) => events.filter((event) => event.event === "chunk");

  it("carry each chunk with the id of its start and index, then the status and a final event", async (test) => {
    const { worker, job, events } = await makeRead(test, server);
    await worker.chunk(job, { output: "a", metrics: { running: 1 } });
    const reply = await events();
    expect(reply.status).toBe(200);
    expect(reply.headers.get("content-type")).toMatch(/^text\/event-stream/);
    await worker.chunk(job, { output: "b" });
    await worker.done(job, { output: [] }, true);
    const all = await readEvents(reply);
    const found = chunkEvents(all);
    expect(found.map((event) => event.id)).toEqual(["1-0", "1-1"]);
    expect(found.map((event) => JSON.parse(event.data))).toEqual([
      { output: "a", metrics: { running: 1, stream_index: 0 } },
      { output: "b", metrics: { stream_index: 1 } },
    ]);
    const statuses = all.filter((event) => event.event === "status").map((event) => event.data);
    expect(statuses.join()).toContain("IN_PROGRESS");
    expect(all.at(-1)?.event).toBe("done");
    expect(all.filter((event) => event.event === "done")).toHaveLength(1);
  });

  it("resume after the last id seen, and consume nothing", async (test) => {
    const { worker, job, events, chunks } = await makeRead(test, server);
    for (const output of ["a", "b", "c"]) await worker.chunk(job, { output });
    const broken = new AbortController();
    const first = await events(undefined, broken.signal);
    const seen = await readEvents(first, (soFar) => chunkEvents(soFar).length >= 2);
    broken.abort();
    const last = chunkEvents(seen)[1]?.id as string;
    expect(last).toBe("1-1");
    await worker.done(job, {}, true);
    const rest = chunkEvents(await readEvents(await events(last)));
    expect(rest.map((event) => event.id)).toEqual(["1-2"]);
    const whole = chunkEvents(await readEvents(await events()));
    expect(whole.map((event) => event.id)).toEqual(["1-0", "1-1", "1-2"]);
    const nothing = await readEvents(await events("1-2"));
    expect(chunkEvents(nothing)).toEqual([]);
    expect(nothing.at(-1)?.event).toBe("done");
    expect(outputs(await chunks())).toEqual(["a", "b", "c"]);
  });

  it("report when the job starts over, and continue with its new start", async (test) => {
    const { worker, job, events } = await makeRead(test, server);
    await worker.chunk(job, { output: "old" });
    const reply = await events();
    let sawOld = false;
    const reading = readEvents(reply, (soFar) => {
      sawOld = chunkEvents(soFar).length > 0;
      return false;
    });
    await until(() => sawOld);
    expect((await worker.take()).body.id).toBe(job);
    await worker.chunk(job, { output: "new" });
    await worker.done(job, {}, true);
    const all = await reading;
    expect(chunkEvents(all).map((event) => event.id)).toEqual(["1-0", "2-0"]);
    const between = all.slice(
      all.findIndex((event) => event.id === "1-0") + 1,
      all.findIndex((event) => event.id === "2-0"),
    );
    expect(between.some((event) => event.event === "status")).toBe(true);
    const resumed = chunkEvents(await readEvents(await events("1-0")));
    expect(resumed.map((event) => event.id)).toEqual(["2-0"]);
  });
});
