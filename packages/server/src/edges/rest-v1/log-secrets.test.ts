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
beforeEach(async () => {
  scene = await Scene.open();
  http = await openHttp(scene);
  endpoint = await scene.endpoint();
  worker = await scene.worker(endpoint);
  await scene.provider.start(plainSpec(worker.row.id));
});
afterEach(async () => {
  await http.close();
  await scene.close();
});

const say = (text: string) => scene.provider.say(worker.row.id, scene.clock.now(), text);
const path = () => `/v1/workers/${worker.row.id}/logs`;
const bodies = async () => {
  const { status, text } = await http.get(path(), { headers: { accept: "application/x-ndjson" } });
  expect(status, text).toBe(200);
  return text
    .split("\n")
    .filter(Boolean)
    .map((line) => JSON.parse(line));
};
const texts = async () => (await bodies()).map(({ text }) => text);

describe("The accessSecret of a job", () => {
  const s3Config = (accessSecret: string) => ({
    accessId: "id",
    accessSecret,
    bucketName: "b",
    endpointUrl: "http://s3",
  });

  it("is read once for all readers of a log, in turns with other work", async () => {
    const count = 40;
    for (let n = 0; n < count; n++)
      await scene.running(endpoint, worker, { input: {}, s3Config: s3Config(`secret-${n}`) });
    say("secret-0 and secret-39");
    const read = vi.spyOn(scene.parts.secrets, "ofJobs");
    const opened = vi.spyOn(scene.parts.vault, "open");
    const { value, waits } = await withTurns(() => Promise.all(Array.from({ length: 10 }, texts)));
    expect(new Set(value.flat())).toEqual(new Set(["**** and ****"]));
    expect(opened).toHaveBeenCalledTimes(count);
    expect(waits).toBeGreaterThanOrEqual(read.mock.calls.length);
    read.mockRestore();
    opened.mockRestore();
  });

  it("is hidden while its worker holds the job, also in JSON text and in a log that is followed", async () => {
    const jobId = await scene.running(endpoint, worker, { input: {}, s3Config: s3Config('se"cret') });
    say(`plain se"cret`);
    say(JSON.stringify({ requestId: jobId, message: 'my se"cret' }));
    const [plain, json] = await bodies();
    expect(plain.text).toBe("plain ****");
    expect(json.message).toBe("my ****");
    const reader = await followLog(scene, `${http.url}${path()}?follow=true`);
    await reader.until(2);
    say('again se"cret');
    await reader.until(3);
    expect(reader.texts()[2]).toBe("again ****");
    reader.leave();
  });

  it("is hidden also when the job, and later its worker, has ended", async () => {
    const jobId = await scene.running(endpoint, worker, { input: {}, s3Config: s3Config("first-secret") });
    say("with first-secret");
    await scene.done(worker, jobId);
    expect(await texts()).toEqual(["with ****"]);
    await scene.running(endpoint, worker, { input: {}, s3Config: s3Config("other-secret") });
    say("first-secret, other-secret");
    scene.provider.end(worker.row.id, { code: 0 });
    await scene.parts.registry.changeWorker(worker, { ...workerChanges.end, endedAt: scene.clock.now() });
    expect(await texts()).toEqual(["with ****", "****, ****"]);
  });

  it("is hidden also after a restart of the server, when its provider knows nothing of the job any more", async () => {
    const jobId = await scene.running(endpoint, worker, { input: {}, s3Config: s3Config("first-secret") });
    await scene.done(worker, jobId);
    await http.close();
    scene = await scene.restart();
    http = await openHttp(scene);
    say("with first-secret");
    expect(await texts()).toEqual(["with ****"]);
  });

  it("is noted once for all jobs that have it, and goes with its worker", async () => {
    const note = vi.spyOn(scene.parts.secrets, "noteOfJobs");
    for (let n = 0; n < 3; n++) await scene.running(endpoint, worker, { input: {}, s3Config: s3Config("the-same") });
    expect(note.mock.calls.flatMap(([, values]) => values)).toHaveLength(1);
    const [kept] = await scene.parts.secrets.ofJobs(worker.row.no, 0, 5);
    expect(kept?.value).not.toContain("the-same");
    expect(scene.parts.vault.open(kept!.value)).toBe("the-same");
  });

  it("is hidden before its worker has it; a job is handed out even if hiding fails", async () => {
    const hide = vi.spyOn(scene.provider, "hide").mockRejectedValue(new Error("the keeper is gone"));
    await scene.running(endpoint, worker, { input: {}, s3Config: s3Config("a-secret") });
    expect(hide.mock.calls).toEqual([[worker.row.id, "a-secret"]]);
    expect(scene.events).toContainEqual(expect.objectContaining({ type: "server.warning" }));
    hide.mockClear();
    await scene.running(endpoint, worker);
    expect(hide).not.toHaveBeenCalled();
  });

  it("is not passed to this host's provider if another host has the worker, since that could start a keeper here", async () => {
    const { registry, ids, clock, here } = scene.parts;
    const elsewhere = { hostNo: here.hostNo + 1, endpointNo: endpoint.no, version: endpoint.version };
    const far = await registry.createWorker({ ...elsewhere, id: ids.resource(), createdAt: clock.now() });
    const hide = vi.spyOn(scene.provider, "hide");
    await scene.running(endpoint, far, { input: {}, s3Config: s3Config("a-secret") });
    expect(hide).not.toHaveBeenCalled();
    expect(scene.events).toContainEqual(
      expect.objectContaining({ type: "server.warning", message: expect.stringContaining(far.row.id) }),
    );
  });

  it("delays a job by at most 2 s if the provider does not answer", async () => {
    vi.spyOn(scene.provider, "hide").mockReturnValue(new Promise(() => {}));
    await scene.submit(endpoint, { input: {}, s3Config: s3Config("a-secret") });
    const sleeping = scene.clock.sleeping;
    const poll = scene.poll(worker);
    await scene.advance(limits.logHideMs - 1);
    expect(poll.jobs).toBeUndefined();
    await scene.advance(1);
    expect(poll.jobs).toHaveLength(1);
    expect(scene.events).toContainEqual(expect.objectContaining({ type: "server.warning" }));
    expect(scene.clock.sleeping).toBe(sleeping);
  });
});

describe("Control characters of a worker's output", () => {
  it("are shown as escapes in plain text, so that they cannot control a terminal, and unchanged in JSON", async () => {
    const said = "\u001b[2J\u001b]0;title\u0007a\tb\r\u0000\u007f\u009b31m \u00e9";
    say(said);
    const { text } = await http.get(path());
    expect(text.endsWith(" stdout \\x1b[2J\\x1b]0;title\\x07a\tb\\x0d\\x00\\x7f\\x9b31m \u00e9\n")).toBe(true);
    expect(await texts()).toEqual([said]);
  });
});
