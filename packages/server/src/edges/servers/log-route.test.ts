import { afterEach, beforeEach, expect, it } from "vitest";
import { limits } from "../../limits/index.js";
import type { LiveWorker } from "../../memory/registry.js";
import { Marks } from "../../operations/access/server-marks.js";
import type { LogQuery } from "../../provider.js";
import { logPath, logsFrom } from "../../providers/other-servers/logs.js";
import { plainSpec } from "../../testing/facts-fixture.js";
import { type Http, openHttp } from "../../testing/http-fixture.js";
import { Scene } from "../../testing/scene-fixture.js";

const address = { host: "127.0.0.1", port: 1 };
let scene: Scene;
let http: Http;
let theirs: Marks;
let worker: LiveWorker;
let now: number;
beforeEach(async () => {
  scene = await Scene.open();
  const marksOf = (no: number) => new Marks({ ...scene.parts, here: { ...scene.parts.here, server: { no, address } } });
  theirs = marksOf(2);
  http = await openHttp(scene, { logsHere: { logs: (...asked) => scene.provider.logs(...asked), marks: marksOf(1) } });
  worker = await scene.worker(await scene.endpoint());
  await scene.provider.start(plainSpec(worker.row.id));
  now = scene.clock.now();
});
afterEach(async () => {
  await http.close();
  await scene.close();
});

const passedOn = (target: string, url: string) => ({
  "x-millrace-passed-on": theirs.make(1, { target, method: "GET", url }),
});
/** Asks as another server does. */
const asked = (query: Partial<LogQuery> = {}) =>
  logsFrom({ host: "127.0.0.1", port: Number(new URL(http.url).port), mark: passedOn }, worker.row.id, {
    signal: new AbortController().signal,
    ...query,
  });
const texts = async (query?: Partial<LogQuery>) => {
  const found: string[] = [];
  for await (const lines of asked(query)) found.push(...lines.map(({ text }) => text));
  return found;
};

it("gives another server the lines that it asks for", async () => {
  for (let n = 0; n < 5; n++) scene.provider.say(worker.row.id, now + n, `line ${n}`);
  expect(await texts()).toEqual(["line 0", "line 1", "line 2", "line 3", "line 4"]);
  expect(await texts({ tail: 2 })).toEqual(["line 3", "line 4"]);
  expect(await texts({ sinceUs: (now + 4) * 1_000 })).toEqual(["line 4"]);
});

it("follows a log until its worker has ended", async () => {
  scene.provider.say(worker.row.id, now, "before");
  const found: string[] = [];
  const following = (async () => {
    for await (const lines of asked({ follow: true })) found.push(...lines.map(({ text }) => text));
  })();
  await expect.poll(() => found).toEqual(["before"]);
  scene.provider.say(worker.row.id, now + 1, "after");
  await expect.poll(() => found).toEqual(["before", "after"]);
  scene.provider.end(worker.row.id, { code: 0 });
  await following;
});

it("follows for one reader as many workers as a reader may follow, and twice as many for two", async () => {
  const leaving = new AbortController();
  const ends = Array.from({ length: 2 * limits.logSourcesMax }, async () => {
    for await (const _ of asked({ follow: true, signal: leaving.signal }));
  }).map((end) => end.catch((error: Error) => error.message));
  await expect.poll(() => scene.provider.followers).toBe(2 * limits.logSourcesMax);
  leaving.abort();
  expect((await Promise.all(ends)).filter((error) => error?.includes("status"))).toEqual([]);
});

it("ends what it reads when the other server hangs up", async () => {
  const leaving = new AbortController();
  let reading: AbortSignal | undefined;
  const { logs } = scene.provider;
  scene.provider.logs = (id, handle, query) => {
    reading = query.signal;
    return logs.call(scene.provider, id, handle, query);
  };
  const following = (async () => {
    for await (const _ of asked({ follow: true, signal: leaving.signal }));
  })();
  await expect.poll(() => reading).toBeDefined();
  leaving.abort();
  await expect(following).rejects.toThrow();
  await expect.poll(() => reading?.aborted).toBe(true);
});

it("is unknown to whoever has no mark, and a mark is for one request", async () => {
  const { id } = worker.row;
  const path = logPath(id, { tail: 10 });
  const get = (headers: Record<string, string>, url = path) => http.get(url, { headers });
  const mark = passedOn(id, path);
  expect((await get(mark)).status).toBe(200);
  for (const [headers, url] of [
    [{}, path],
    [mark, path],
    [passedOn("nmlkjihgfedcba", path), path],
    [passedOn(id, path), logPath(id, { tail: 11 })],
  ] as const)
    expect((await get({ ...headers }, url)).json).toMatchObject({ code: "NOT_FOUND" });
  const unknown = logPath("aaaaaaaaaaaaaa", {});
  expect((await get(passedOn("aaaaaaaaaaaaaa", unknown), unknown)).status).toBe(404);
});
