import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Endpoint } from "../../domain/endpoints/endpoint.js";
import { limits } from "../../limits/index.js";
import type { LiveWorker } from "../../memory/registry.js";
import { plainSpec, workerChanges } from "../../testing/facts-fixture.js";
import { followLog } from "../../testing/followed-log-fixture.js";
import { type Http, openHttp } from "../../testing/http-fixture.js";
import { Scene } from "../../testing/scene-fixture.js";
import { withTurns } from "../../testing/turns-fixture.js";

let scene: Scene;
let http: Http;
let endpoint: Endpoint;
let worker: LiveWorker;
let now: number;
beforeEach(async () => {
  scene = await Scene.open();
  http = await openHttp(scene);
  endpoint = await scene.endpoint();
  worker = await running(endpoint);
  now = scene.clock.now();
});
afterEach(async () => {
  await http.close();
  await scene.close();
});

async function running(of: Endpoint): Promise<LiveWorker> {
  const made = await scene.worker(of);
  await scene.provider.start(plainSpec(made.row.id));
  return made;
}
const say = (text: string, at = now, by = worker) => scene.provider.say(by.row.id, at, text);
const end = async (of: LiveWorker) => {
  scene.provider.end(of.row.id, { code: 0 });
  await scene.parts.registry.changeWorker(of, { ...workerChanges.end, endedAt: scene.clock.now() });
};
const ofWorker = (query = "", of = worker) => `/v1/workers/${of.row.id}/logs${query}`;
const ofEndpoint = (query = "") => `/v1/endpoints/${endpoint.id}/logs${query}`;
const bodies = async (path: string) => {
  const { status, text } = await http.get(path, { headers: { accept: "application/x-ndjson" } });
  expect(status, text).toBe(200);
  return text
    .split("\n")
    .filter(Boolean)
    .map((line) => JSON.parse(line));
};
const texts = async (path: string) => (await bodies(path)).map(({ text }) => text);

const follow = (path: string, headers: Record<string, string> = {}) => followLog(scene, http.url + path, headers);

describe("GET /v1/workers/{id}/logs", () => {
  it.each(["text", "ndjson"])("makes a long page in slices, in turns with other work: %s", async (format) => {
    const line = "\x1b".repeat(8_000);
    const count = 100;
    for (let n = 0; n < count; n++) say(line, now + n);
    const { value, waits } = await withTurns(() => http.get(ofWorker(`?tail=${count}&format=${format}`)));
    expect(value.text.trimEnd().split("\n")).toHaveLength(count);
    expect(waits).toBeGreaterThan((count * line.length) / limits.listSliceBytes);
  });

  it("is text, oldest first: time, worker, pipe, line", async () => {
    say("one");
    scene.provider.say(worker.row.id, now + 1_500, "<b>two</b>", "stderr");
    const { headers, text } = await http.get(ofWorker());
    const at = (ms: number) => new Date(ms).toISOString();
    expect(text).toBe(
      `${at(now)} ${worker.row.id} stdout one\n${at(now + 1_500)} ${worker.row.id} stderr <b>two</b>\n`,
    );
    expect([headers.get("content-type"), headers.get("x-content-type-options")]).toEqual([
      "text/plain; charset=utf-8",
      "nosniff",
    ]);
  });

  it("is one JSON object per line on request, with the mark if the worker made one", async () => {
    say("plain \u0000\u001b[31m");
    say('{"requestId":"job-1","message":"half","level":"WARN"}');
    const at = new Date(now).toISOString();
    const line = { at, workerId: worker.row.id, stream: "stdout" };
    const both = [
      { ...line, text: "plain \u0000\u001b[31m" },
      {
        ...line,
        text: '{"requestId":"job-1","message":"half","level":"WARN"}',
        jobId: "job-1",
        message: "half",
        level: "WARN",
      },
    ];
    expect(await bodies(ofWorker())).toEqual(both);
    const asked = await http.get(ofWorker("?format=ndjson"));
    expect(asked.headers.get("content-type")).toBe("application/x-ndjson; charset=utf-8");
    expect(
      asked.text
        .trim()
        .split("\n")
        .map((each) => JSON.parse(each)),
    ).toEqual(both);
  });

  it("gives the last 100 lines, or a chosen number, since a chosen time, of a chosen job", async () => {
    for (let n = 0; n < 150; n++) say(JSON.stringify({ requestId: `job-${n % 3}`, message: `${n}` }), now + n * 1_000);
    await scene.advance(150_000);
    const messages = async (query: string) => (await bodies(ofWorker(query))).map(({ message }) => Number(message));
    const upTo = (from: number, to: number, step = 1) =>
      Array.from({ length: Math.ceil((to - from) / step) }, (_, n) => from + n * step);
    expect(await messages("")).toEqual(upTo(50, 150));
    expect(await messages("?tail=2")).toEqual([148, 149]);
    expect(await messages("?tail=0")).toEqual([]);
    expect(await messages("?since=5s")).toEqual(upTo(145, 150));
    expect(await messages(`?since=${now + 147_000}`)).toEqual(upTo(147, 150));
    expect(await messages(`?since=${new Date(now + 147_000).toISOString()}`)).toEqual(upTo(147, 150));
    expect(await messages("?jobId=job-1&tail=3")).toEqual([142, 145, 148]);
    expect(await messages("?jobId=nobody")).toEqual([]);
  });

  it.each([
    ["?tail=-1", /'tail'/],
    ["?tail=10001", /'tail'.*10000/],
    ["?tail=1e3", /'tail'/],
    ["?since=yesterday", /'since'/],
    ["?jobId=", /'jobId'/],
    ["?jobId=a%20b", /'jobId'/],
    ["?follow=yes", /'follow'/],
    ["?format=xml", /'format'/],
    ["?format=constructor", /'format'/],
  ])("refuses %s with a sentence", async (query, why) => {
    for (const path of [ofWorker(query), ofEndpoint(query)]) {
      const { status, json } = await http.get(path);
      expect([status, json.code]).toEqual([400, "INVALID_INPUT"]);
      expect(json.error).toMatch(why);
    }
  });

  it("is available for an ended worker as long as its row is kept", async () => {
    say("last words");
    await end(worker);
    expect(await texts(ofWorker())).toEqual(["last words"]);
    await scene.advance(limits.workerRowKeptMs + 1);
    await scene.parts.registry.forgetWorkers(scene.clock.now() - limits.workerRowKeptMs);
    expect((await http.get(ofWorker())).json.code).toBe("NOT_FOUND");
  });

  it("is refused for another user's worker like an unknown worker's, and outside a key's scope", async () => {
    const stranger = await scene.stranger();
    const other = await scene.endpoint();
    await scene.addKey("mr_bound-to-another", scene.admin.ownerNo, {
      kind: "endpoints",
      access: { [other.id]: "run" },
    });
    await scene.addKey("mr_bound", scene.admin.ownerNo, { kind: "endpoints", access: { [endpoint.id]: "read" } });
    await scene.addKey("mr_read-only", scene.admin.ownerNo, { kind: "readOnly" });
    const paths = [ofWorker(), ofEndpoint()];
    const followed = paths.map((path) => `${path}?follow=true`);
    const statuses = async (key: string | null, of: readonly string[]) =>
      (await Promise.all(of.map((path) => http.get(path, { key })))).map(({ status }) => status);
    expect(await statuses(null, [...paths, ...followed])).toEqual([401, 401, 401, 401]);
    expect(await statuses(stranger.key, [...paths, ...followed])).toEqual([404, 404, 404, 404]);
    expect(await statuses("mr_bound-to-another", [...paths, ...followed])).toEqual([404, 404, 404, 404]);
    expect(await statuses("mr_bound", paths)).toEqual([200, 200]);
    expect(await statuses("mr_read-only", paths)).toEqual([200, 200]);
    const theirs = await http.get(ofWorker(), { key: stranger.key });
    const nobodys = await http.get("/v1/workers/unknown0000000/logs", { key: stranger.key });
    expect(theirs.json.code).toBe(nobodys.json.code);
    expect(theirs.json.error.replace(worker.row.id, "x")).toBe(nobodys.json.error.replace("unknown0000000", "x"));
  });

  it("is deleted with its endpoint", async () => {
    await http.call("DELETE", `/sdk/v1/endpoints/${endpoint.id}`);
    expect([(await http.get(ofWorker())).status, (await http.get(ofEndpoint())).status]).toEqual([404, 404]);
  });

  it("is not looked up for an invalid worker id", async () => {
    const listed = vi.spyOn(scene.parts.registry, "workerListed");
    for (const id of ["a%00", "%00".repeat(14), "x".repeat(15)]) {
      for (const path of [`/v1/workers/${id}`, `/v1/workers/${id}/logs`])
        expect((await http.get(path)).json).toMatchObject({ code: "NOT_FOUND" });
    }
    expect(listed).not.toHaveBeenCalled();
  });

  it("of another host is refused with that host's number", async () => {
    worker.row = { ...worker.row, hostNo: 77 };
    for (const query of ["", "?follow=true"]) {
      const { status, json } = await http.get(ofWorker(query));
      expect([status, json.code]).toEqual([409, "LOG_ELSEWHERE"]);
      expect(json.error).toContain("host 77");
    }
  });
});

describe("GET /v1/endpoints/{id}/logs", () => {
  it("merges the lines of live and ended workers by time, and keeps the last ones", async () => {
    const other = await running(endpoint);
    const gone = await running(endpoint);
    for (let n = 0; n < 9; n++) say(`${n}`, now + n * 10, [worker, other, gone][n % 3]);
    await end(gone);
    const stranger = await running(await scene.endpoint());
    say("another endpoint's", now + 5, stranger);
    expect(await texts(ofEndpoint())).toEqual(["0", "1", "2", "3", "4", "5", "6", "7", "8"]);
    expect(await texts(ofEndpoint("?tail=4"))).toEqual(["5", "6", "7", "8"]);
  });

  it("reads no more of logs that ended long ago than it needs", async () => {
    const old = await running(endpoint);
    say("old", now, old);
    await end(old);
    await scene.advance(limits.hostSilenceMs + 60_000);
    say("new", scene.clock.now());
    let reads = 0;
    const logs: typeof scene.provider.logs = (...query) => {
      reads++;
      return scene.provider.logs(...query);
    };
    const counting = await openHttp(scene, { logs });
    const { text } = await counting.get(ofEndpoint("?tail=1"));
    await counting.close();
    expect([text.trim().endsWith(" new"), reads]).toEqual([true, 1]);
    expect(await texts(ofEndpoint("?tail=2"))).toEqual(["old", "new"]);
  });

  it("names the workers whose logs other hosts keep", async () => {
    say("here");
    const far = await running(endpoint);
    far.row = { ...far.row, hostNo: 77 };
    const lines = await bodies(ofEndpoint());
    expect(lines[0].note).toMatch(/1 more workers .* other hosts/);
    expect(lines[1].text).toBe("here");
    expect((await http.get(ofEndpoint())).text).toMatch(/^# the logs of 1 more workers .*\n.* here\n$/);
  });

  it("names a worker whose log cannot be read, and shows the other logs", async () => {
    say("here");
    const away = await running(endpoint);
    const logs: typeof scene.provider.logs = async function* (id, ...rest) {
      if (id === away.row.id) throw new Error("no engine answers");
      yield* scene.provider.logs(id, ...rest);
    };
    const broken = await openHttp(scene, { logs });
    expect((await broken.get(ofEndpoint())).text).toMatch(/^# .*no engine answers.*\n.* here\n$/);
    const alone = await broken.get(ofWorker("", away));
    expect([alone.status, alone.json.code]).toEqual([503, "UNAVAILABLE"]);
    await broken.close();
  });

  it("says so if older lines were not searched", async () => {
    const other = await running(endpoint);
    say("one");
    say("other", now + 1, other);
    let reads = 0;
    const logs: typeof scene.provider.logs = (id, handle, query) => {
      reads++;
      if (query.search) query.search.bytesLeft -= limits.logSearchBytesMax;
      return scene.provider.logs(id, handle, query);
    };
    const bounded = await openHttp(scene, { logs });
    const { text } = await bounded.get(ofEndpoint("?jobId=nobodys"));
    expect([text, reads]).toEqual([expect.stringMatching(/^# older lines were not searched: .*\n$/), 1]);
    await bounded.close();
  });

  it("keeps a reply within its size by leaving out older lines", async () => {
    const text = "x".repeat(limits.logLineBytesMax);
    const fit = Math.floor(limits.logReplyBytesMax / limits.logLineBytesMax);
    for (let n = 0; n < fit + 10; n++) say(`${text.slice(5)}${String(n).padStart(5, "0")}`);
    const { text: got } = await http.get(ofEndpoint("?tail=10000"));
    expect(got.split("\n")).toHaveLength(fit + 1);
    expect(got.trim().endsWith(String(fit + 9))).toBe(true);
  });
});

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
    const connections = () => new Promise((done) => http.app.server.getConnections((_, count) => done(count)));
    await scene.until(async () => (await connections()) === 0);
    find();
    await scene.settle();
    const reader = await follow(ofWorker("?follow=true"));
    expect([reader.status, scene.provider.followers]).toEqual([200, 1]);
    reader.leave();
  });

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
