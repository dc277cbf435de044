import { request } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { makeHandler } from "../e2e/handlers.js";
import { makePuppets, type Puppet } from "../e2e/puppet.js";
import { statusOf, submit } from "../e2e/wire.js";
import { makeEndpoint, startServer, type TestServer } from "../harness.js";
import { type Bystander, expectUndisturbed, memoryMib, startBystander } from "./crowds/bystander.js";

const mib = 2 ** 20;
let server: TestServer;
let bystander: Bystander;
let endpoint: string;
let worker: Puppet;
const undos: (() => Promise<void> | void)[] = [];
const ending = { onTestFinished: (undo: () => Promise<void> | void) => void undos.unshift(undo) };
beforeAll(async () => {
  server = await startServer({ MILLRACE_RATE_LIMITS: "off", MILLRACE_LOG_LEVEL: "error" });
  ending.onTestFinished(() => server.end());
  bystander = await startBystander(server, await makeEndpoint(server, makeHandler(ending), { workersMax: 0 }));
  ending.onTestFinished(() => bystander.end());
  const puppets = await makePuppets(ending, server);
  endpoint = puppets.id;
  worker = await puppets.puppet();
});
afterAll(async () => {
  for (const undo of undos) await undo();
});

/** Gives the worker a job, and posts its result. */
async function ended(word: string | Uint8Array<ArrayBuffer>) {
  const job = await submit(server, endpoint);
  expect((await worker.take()).body?.id).toBe(job);
  expect((await worker.call("POST", worker.doneUrl(job), word)).status).toBe(200);
  return statusOf(server, endpoint, job);
}

const bytes = (start: string, fill: number, count: number, end: string) =>
  Buffer.concat([Buffer.from(start), Buffer.alloc(count, fill), Buffer.from(end)]);

/** Posts shared bytes without copying them; resolves with the status of the answer. */
const posted = (url: string, said: Uint8Array): Promise<number> =>
  new Promise((resolve, reject) => {
    const label = "application/x-www-form-urlencoded"; // as stock workers do
    const authorization = worker.env.RUNPOD_AI_API_KEY ?? "";
    const headers = { authorization, "content-type": label, "content-length": said.length };
    const sent = request(url, { method: "POST", headers, agent: false }, (reply) => {
      reply.resume().once("end", () => resolve(reply.statusCode ?? 0));
    });
    sent.once("error", reject).end(said);
  });

const timeout = 240_000;
const attackMs = 4_000;
const paceMs = 200;
/** Repeats an act, with pauses so that other requests are served in between. */
async function again(act: () => Promise<unknown>): Promise<void> {
  for (const end = Date.now() + attackMs; Date.now() < end; await sleep(paceMs)) await act();
}

const words: { it: string; word: () => string | Uint8Array<ArrayBuffer>; error: RegExp }[] = [
  { it: "NaN and Infinity", word: () => '{"output":[NaN,Infinity]}', error: /not JSON.*position 11/ },
  { it: "invalid UTF-8", word: () => bytes('{"output":"', 0xff, 8, '"}'), error: /not JSON.*UTF-8/ },
  { it: "20 MB of invalid UTF-8", word: () => bytes("", 0xff, 20 * mib, ""), error: /not JSON|larger/ },
  { it: "20 MB of brackets", word: () => bytes('{"output":', 0x5b, 19 * mib, ""), error: /not JSON/ },
  {
    it: "a million levels",
    word: () => `{"output":${"[".repeat(1e6)}${"]".repeat(1e6)}}`,
    error: /not JSON/,
  },
  {
    it: "a report over 20 MB",
    word: () => bytes('{"output":"', 0x78, 21 * mib, '"}'),
    error: /20971520 bytes/,
  },
  {
    it: "a report over 100 MB",
    word: () => bytes('{"output":"', 0x78, 101 * mib, '"}'),
    error: /20971520 bytes/,
  },
];

describe("a worker's hostile report fails its job and disturbs no other client", () => {
  it.each(words)("$it", { timeout }, async ({ it: name, word, error }) => {
    const said = word();
    await expectUndisturbed(bystander, name, () =>
      again(async () => {
        expect(await ended(said)).toMatchObject({ status: "FAILED", error: expect.stringMatching(error) });
      }),
    );
    await bystander.expectNothingLost();
  });
});

it("results of 20 MB, one after another, are kept and disturb no other client", { timeout }, async () => {
  const said = bytes('{"output":"', 0x78, 20 * mib - 100, '"}');
  const attack = () =>
    again(async () => {
      const job = await submit(server, endpoint);
      expect((await worker.take()).body?.id).toBe(job);
      expect((await worker.call("POST", worker.doneUrl(job), said)).status).toBe(200);
    });
  await expectUndisturbed(bystander, "results of 20 MB", attack, 100);
  await bystander.expectNothingLost();
});

it("30 reports of 100 MB at once are answered, and memory stays bounded", { timeout }, async () => {
  const said = bytes('{"output":"', 0x78, 100 * mib, '"}');
  const before = memoryMib(server.pid);
  let highest = before;
  const watch = setInterval(() => {
    highest = Math.max(highest, memoryMib(server.pid));
  }, 25);
  const answers = await Promise.all(Array.from({ length: 30 }, () => posted(worker.doneUrl("nobody"), said))).finally(
    () => clearInterval(watch),
  );
  console.log(`30 reports of 100 MB: memory from ${before.toFixed(0)} MiB, at most ${highest.toFixed(0)}`);
  expect(answers).toContain(200);
  for (const status of answers) expect([200, 503]).toContain(status); // never 4xx
  expect(highest - before).toBeLessThan(1_500);
  await bystander.expectNothingLost();
});
