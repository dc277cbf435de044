import { describe, expect, it } from "vitest";
import { limits } from "../../limits/index.js";
import { followLog } from "../../testing/followed-log-fixture.js";
import { end, endpoint, http, now, openPrinting, say, scene, worker } from "../rest-v1/printing-fixture.js";

openPrinting();

const follow = (query = "", headers: Record<string, string> = {}) =>
  followLog(scene, `${http.url}/v2/serverless/${endpoint.id}/workers/${worker.row.id}/logs${query}`, headers);
type Reader = Awaited<ReturnType<typeof follow>>;
/** Waits for its end, while time passes. */
const over = (reader: Reader) =>
  scene.until(async () => {
    await scene.advance(limits.logGatherMs);
    return reader.isOver();
  });
const lines = (reader: Reader) => reader.events().flatMap(({ data }) => data?.line ?? []);

describe("A worker's log over REST v2", () => {
  it("comes as events of source, line and time, and ends with the worker", async () => {
    for (const text of ["a", "b", "c"]) say(text);
    const reader = await follow("?tail=2");
    expect([reader.status, reader.type]).toEqual([200, "text/event-stream; charset=utf-8"]);
    await reader.until(2);
    say("d", now + 5);
    await reader.until(3);
    await end(worker);
    await over(reader);
    expect(lines(reader)).toEqual(["b", "c", "d"]);
    const { id, data } = reader.events()[0]!;
    expect(data).toMatchObject({ source: "container", ts: expect.stringMatching(/^\d{4}-.*\.\d{6}Z$/) });
    expect(id).toBe(`${data.ts}/${worker.row.id}`);
  });

  it("goes on after the event that its reader names", async () => {
    for (const text of ["a", "b", "c"]) say(text);
    const first = await follow();
    await first.until(3);
    const id = first.events()[1]?.id as string;
    first.leave();
    const second = await follow("?tail=0", { "last-event-id": id });
    await second.until(1);
    expect(lines(second)).toEqual(["c"]);
    second.leave();
  });

  it("may be only what the server itself says, and is refused for another endpoint or malformed parameters", async () => {
    say("a");
    const reader = await follow("?source=system");
    await end(worker);
    await over(reader);
    expect(lines(reader)).toEqual([]);
    const path = (id: string, query = "") => `/v2/serverless/${id}/workers/${worker.row.id}/logs${query}`;
    expect((await http.get(path((await scene.endpoint()).id))).status).toBe(404);
    for (const query of ["?tail=5001", "?tail=x", "?since=soon", "?since=10m", "?source=mine"])
      expect([400, 422], query).toContain((await http.get(path(endpoint.id, query))).status);
  });
});
