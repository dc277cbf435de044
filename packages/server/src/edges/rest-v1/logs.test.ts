import { describe, expect, it, vi } from "vitest";
import { limits } from "../../limits/index.js";
import { openHttp } from "../../testing/http-fixture.js";
import { withTurns } from "../../testing/turns-fixture.js";
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

const bodies = async (path: string) => {
  const { status, text } = await http.get(path, { headers: { accept: "application/x-ndjson" } });
  expect(status, text).toBe(200);
  return text
    .split("\n")
    .filter(Boolean)
    .map((line) => JSON.parse(line));
};
const texts = async (path: string) => (await bodies(path)).map(({ text }) => text);

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
    expect(await messages(`?since=${now + 140_000}&until=${now + 143_000}`)).toEqual(upTo(140, 143));
    expect(await messages(`?until=${now + 143_000}&tail=2`)).toEqual(upTo(141, 143));
    expect(await messages(`?since=${new Date(now + 147_000).toISOString()}`)).toEqual(upTo(147, 150));
    expect(await messages("?jobId=job-1&tail=3")).toEqual([142, 145, 148]);
    expect(await messages("?jobId=nobody")).toEqual([]);
  });

  it.each([
    ["?tail=-1", /'tail'/],
    ["?tail=10001", /'tail'.*10000/],
    ["?tail=1e3", /'tail'/],
    ["?since=yesterday", /'since'/],
    ["?until=tomorrow", /'until'/],
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

  it("counts the workers whose logs are out of reach", async () => {
    say("here");
    const far = await running(endpoint);
    far.row = { ...far.row, hostNo: 77 };
    const lines = await bodies(ofEndpoint());
    expect(lines[0].note).toMatch(/1 more workers .* servers do not answer/);
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

describe("GET /v1/pod/{id}/logs", () => {
  const grouped = (id: string) => http.get(`/v1/pod/${id}/logs`);

  it("gives a worker's lines with their times in one JSON object", async () => {
    say('"quoted"');
    say("two");
    const { status, json, headers } = await grouped(worker.row.id);
    const at = new Date(now).toISOString();
    expect([status, json]).toEqual([200, { container: [`${at} "quoted"`, `${at} two`], system: [] }]);
    expect(headers.get("content-type")).toMatch(/^application\/json/);
  });

  it("has empty lists before the first line, and is 404 for an unknown id", async () => {
    expect((await grouped(worker.row.id)).json).toEqual({ container: [], system: [] });
    expect((await grouped("unknown0000000")).status).toBe(404);
  });
});
