import { describe, expect, it, vi } from "vitest";
import { limits } from "../../limits/index.js";
import { plainSpec } from "../../testing/facts-fixture.js";
import { followLog } from "../../testing/followed-log-fixture.js";
import {
  end,
  endpoint,
  http,
  now,
  ofEndpoint,
  ofWorker,
  openPrinting,
  running,
  say,
  scene,
  worker,
} from "./printing-fixture.js";

openPrinting();

const follow = (path: string, headers: Record<string, string> = {}) => followLog(scene, http.url + path, headers);

describe("A log that is followed", () => {
  it("gives a worker's lines as events, and ends with an event when the worker has ended", async () => {
    for (const text of ["a", "b", "c"]) say(text);
    const reader = await follow(ofWorker("?follow=true&tail=2"));
    expect([reader.status, reader.type]).toEqual([200, "text/event-stream; charset=utf-8"]);
    await reader.until(2);
    say("d", now + 5);
    await reader.until(3);
    await end(worker);
    await reader.until(4);
    await reader.over();
    expect(reader.texts()).toEqual(["b", "c", "d", "end"]);
    expect(scene.provider.followers).toBe(0);
  });

  it("resumes after the line that its reader names, even after the worker's end", async () => {
    for (const text of ["a", "b", "c"]) say(text);
    const first = await follow(ofWorker(), { accept: "text/event-stream" });
    await first.until(3);
    const id = first.events()[1]?.id as string;
    first.leave();
    const second = await follow(ofWorker("?follow=true&tail=0"), { "last-event-id": id });
    await second.until(1);
    expect(second.texts()).toEqual(["c"]);
    second.leave();
    await end(worker);
    const third = await follow(ofWorker("?follow=true"), { "last-event-id": id });
    await third.over();
    expect(third.texts()).toEqual(["c", "end"]);
    const fourth = await follow(ofWorker("?follow=true"), { "last-event-id": "nonsense" });
    await fourth.over();
    expect(fourth.texts()).toEqual(["a", "b", "c", "end"]);
  });

  it("of a worker that has not started yet waits for the start", async () => {
    const late = await scene.worker(endpoint);
    const { startedAt } = late.row;
    late.row = { ...late.row, startedAt: undefined };
    const reader = await follow(ofWorker("?follow=true", late));
    await scene.advance(2 * limits.logPassMs);
    expect(reader.events()).toEqual([]);
    await scene.provider.start(plainSpec(late.row.id));
    late.row = { ...late.row, startedAt };
    say("hello", scene.clock.now(), late);
    await reader.until(1);
    expect(reader.texts()).toEqual(["hello"]);
    reader.leave();
  });

  it("is not begun for clients that left while its worker was looked up", async () => {
    let asked = 0;
    let find = () => {};
    const found = new Promise<void>((resolve) => (find = resolve));
    vi.spyOn(scene.parts.registry, "workerListed").mockImplementation(async () => {
      asked++;
      await found;
      return worker.row;
    });
    const leaving = new AbortController();
    const path = "/v1/workers/aaaaaaaaaaaaaa/logs?follow=true";
    const went = Array.from({ length: limits.logFollowersPerOwner }, () =>
      http.get(path, { signal: leaving.signal }).catch(() => undefined),
    );
    await scene.until(() => asked === went.length);
    leaving.abort();
    await Promise.all(went);
    await scene.until(() => http.connections() === 0);
    find();
    await scene.settle();
    const reader = await follow(ofWorker("?follow=true"));
    expect([reader.status, scene.provider.followers]).toEqual([200, 1]);
    reader.leave();
  });

  it.each(["", "&tail=1"])(
    "of an endpoint brings a line printed while the other workers' were read%s",
    async (more) => {
      const other = await running(endpoint);
      const logs = scene.provider.logs.bind(scene.provider);
      let isPrinted = false;
      vi.spyOn(scene.provider, "logs").mockImplementation((id, ...rest) => {
        if (id === other.row.id && !isPrinted) {
          isPrinted = true;
          say("1", scene.clock.now() + 1);
          say("2", scene.clock.now() + 2, other);
        }
        return logs(id, ...rest);
      });
      const reader = await follow(ofEndpoint(`?follow=true${more}`));
      await reader.until(2);
      expect(reader.texts().sort()).toEqual(["1", "2"]);
      reader.leave();
    },
  );

  it("of an endpoint brings its workers' lines in the order of their times, whichever arrives first", async () => {
    const other = await running(endpoint);
    say("1");
    say("2", now + 1, other);
    const reader = await follow(ofEndpoint("?follow=true"));
    await reader.until(2);
    await scene.until(() => scene.provider.followers === 2);
    say("4", now + 40, other);
    await scene.settle();
    await scene.advance(2 * limits.logGatherMs); // it waits for older lines, a little longer than this
    say("3", now + 30);
    await reader.until(4);
    expect(reader.texts()).toEqual(["1", "2", "3", "4"]);
    reader.leave();
    await scene.until(() => scene.provider.followers === 0);
  });

  it("of an endpoint brings the first lines of a worker that had not started yet in order", async () => {
    const late = await scene.worker(endpoint);
    const { startedAt } = late.row;
    late.row = { ...late.row, startedAt: undefined };
    const reader = await follow(ofEndpoint("?follow=true"));
    await scene.until(() => scene.provider.followers === 1);
    await scene.advance(limits.logGatherMs); // its log was polled, and it has not started
    await scene.provider.start(plainSpec(late.row.id));
    late.row = { ...late.row, startedAt };
    const startAt = scene.clock.now();
    say("1", startAt, late);
    say("2", startAt + 1);
    await reader.until(2);
    expect(reader.texts()).toEqual(["1", "2"]);
    reader.leave();
    await scene.until(() => scene.provider.followers === 0);
  });

  it("of an endpoint goes on when workers end and others join, and ends with the endpoint", async () => {
    const reader = await follow(ofEndpoint("?follow=true"));
    await scene.until(() => scene.provider.followers === 1);
    say("first");
    await reader.until(1);
    await end(worker);
    const next = await running(endpoint);
    say("second", scene.clock.now(), next);
    await reader.until(2);
    expect(reader.texts()).toEqual(["first", "second"]);
    await http.call("DELETE", `/sdk/v1/endpoints/${endpoint.id}`);
    await reader.until(3);
    await reader.over();
    expect(reader.texts()).toEqual(["first", "second", "end"]);
  });

  it("of an endpoint has the lines of workers that started and ended between two polls", async () => {
    const reader = await follow(ofEndpoint("?follow=true"));
    await scene.until(() => scene.provider.followers === 1);
    for (const text of ["one", "two", "three"]) {
      const brief = await running(endpoint);
      say(text, scene.clock.now(), brief);
      await end(brief);
    }
    await reader.until(3);
    expect(reader.texts().sort()).toEqual(["one", "three", "two"]);
    reader.leave();
    await scene.until(() => scene.provider.followers === 0);
  });

  it("of an endpoint shows no line that was dropped in favour of newer ones of another worker", async () => {
    const other = await running(endpoint);
    say("old", now, other);
    for (const n of [1, 2]) say(`${n}`, now + n * 1_000);
    await scene.advance(2_500);
    const reader = await follow(ofEndpoint("?follow=true&tail=2"));
    await scene.until(() => scene.provider.followers === 2);
    say("3", now + 3_000, other);
    await reader.until(3);
    expect(reader.texts()).toEqual(["1", "2", "3"]);
    reader.leave();
  });

  it("of an endpoint resumes after a line of any of its workers", async () => {
    const other = await running(endpoint);
    for (let n = 0; n < 6; n++) say(`${n}`, now + n * 10, n % 2 ? other : worker);
    const first = await follow(ofEndpoint("?follow=true"));
    await first.until(6);
    const id = first.events()[2]?.id as string;
    first.leave();
    const second = await follow(ofEndpoint("?follow=true"), { "last-event-id": id });
    await second.until(3);
    expect(second.texts()).toEqual(["3", "4", "5"]);
    second.leave();
  });

  it("ends when the server stops", async () => {
    const reader = await follow(ofEndpoint("?follow=true"));
    await scene.until(() => scene.provider.followers === 1);
    scene.draining.abort();
    await reader.over();
    expect(scene.provider.followers).toBe(0);
  });

  it("has a limited number of readers, and room again when one leaves", async () => {
    const readers = [];
    for (let n = 0; n < limits.logFollowersPerOwner; n++) readers.push(await follow(ofWorker("?follow=true")));
    const refused = await http.get(ofWorker("?follow=true"));
    expect([refused.status, refused.json.code]).toEqual([503, "UNAVAILABLE"]);
    expect((await http.get(ofWorker())).status).toBe(200);
    readers[0]?.leave();
    await scene.until(() => scene.provider.followers === limits.logFollowersPerOwner - 1);
    const again = await follow(ofWorker("?follow=true"));
    expect(again.status).toBe(200);
    for (const reader of [...readers, again]) reader.leave();
    await scene.until(() => scene.provider.followers === 0);
  });
});
