import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { makeFolder, makeHandler } from "../e2e/handlers.js";
import { call, makeEndpoint, startServer, type TestServer } from "../harness.js";
import { millrace, millraceHere, onTerminal, startMillrace, startOnTerminal, toServer } from "./millrace.js";

let server: TestServer;
let shout: string;
const undos: (() => unknown)[] = [];
const ending = { onTestFinished: (undo: () => unknown) => void undos.unshift(undo) };
const handler = `import { existsSync } from "node:fs";
export default async (input) => {
  if (input.needs && !existsSync(input.needs)) throw new Error("nothing is there");
  if (input.fail) throw new Error("no such text");
  if (input.many) return input.many;
  await new Promise((done) => setTimeout(done, input.ms ?? 0));
  return String(input.text ?? "").toUpperCase();
};`;

/** Yields a text, and once there is a file an object, or an error. */
const counting = `import { existsSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
export default async function* ({ gate, fails }) {
  yield "first";
  while (!existsSync(gate)) await sleep(20);
  if (fails) throw new Error("no second");
  yield { n: 2 };
}`;

beforeAll(async () => {
  server = await startServer();
  shout = await makeEndpoint(server, makeHandler(ending, handler), { name: "shout", workersMax: 1, idleTimeout: 60 });
  await makeEndpoint(server, makeHandler(ending, handler), { name: "idle", workersMax: 0 });
  await makeEndpoint(server, makeHandler(ending, counting), { name: "count", workersMax: 1, idleTimeout: 60 });
});
afterAll(async () => {
  await server?.end();
  for (const undo of undos) await undo();
});

const run = (...words: string[]) => millraceHere(words, { env: toServer(server) });

describe("millrace run", () => {
  it("waits for its server where that is started again, and a batch does", async (test) => {
    const folder = makeFolder(test);
    writeFileSync(join(folder, "inputs.jsonl"), '{"text":"a","ms":200}\n'.repeat(20));
    const env = toServer(server);
    const held = await makeEndpoint(server, makeHandler(test, handler), { name: "held", workersMax: 0 });
    const one = startMillrace(test, ["run", "held", '{"text":"kept"}'], { env });
    const words = ["run", "shout", "--batch", "inputs.jsonl", "--out", "results.jsonl"];
    const many = startMillrace(test, words, { env, folder });
    const queued = async () => (await call(server, "GET", `/v2/${held}/health`)).body.jobs.inQueue;
    await expect.poll(queued, { timeout: 30_000 }).toBe(1);
    const ended = () => readFileSync(join(folder, "results.jsonl"), "utf8").split("\n").length > 3;
    await expect.poll(ended, { timeout: 30_000 }).toBe(true);
    await server.kill();
    await server.restart();
    await call(server, "PATCH", `/v1/endpoints/${held}`, { workersMax: 1 });
    expect([await one.ended, await many.ended]).toEqual([0, 0]);
    expect(one.screen()).toBe("KEPT\n");
    expect(many.screen()).toContain("20 jobs, of which 0 failed");
  }, 120_000);

  it("shows no line that changes on a terminal that does not say how wide it is", async () => {
    const env = toServer(server);
    const going = startOnTerminal({ onTestFinished: () => {} }, ["run", "idle", "{}"], { env, columns: 0 });
    await new Promise((over) => setTimeout(over, 2_500));
    going.interrupt();
    expect(await going.ended).toBe(130);
    expect(going.screen().length).toBeLessThan(1_000);
    await run("purge", "idle", "--yes");
  });

  it("prints the output: a text as it is, anything else as JSON", async () => {
    expect(await run("run", "shout", '{"text":"hello"}')).toEqual({ exit: 0, out: "HELLO\n", err: "" });
    expect(JSON.parse((await run("run", shout, '{"many":[1,{"a":2}]}')).out)).toEqual([1, { a: 2 }]);
  });

  it("hands on every character to a pipe, and none to a terminal that it would obey, but colours", async () => {
    const input = JSON.stringify({ many: "\u001b[31mred\u001b[0m \u001b]0;title\u0007 \u009b2J" });
    const piped = await run("run", "shout", input);
    expect(piped.out).toBe("\u001b[31mred\u001b[0m \u001b]0;title\u0007 \u009b2J\n");
    const { screen } = await onTerminal(["run", "shout", input], { env: toServer(server) });
    expect(screen).toContain("\u001b[31mred\u001b[0m \\x1b]0;title\\x07 \\x9b2J");
    const json = await run("run", "shout", input, "--json");
    expect(json.out).not.toContain("\u009b");
    expect(JSON.parse(json.out).output).toContain("\u009b");
  });

  it("hands on numbers as they are written, however long", async () => {
    const long = '{"id":12345678901234567890,"half":0.50}';
    const bodies: string[] = [];
    // our own handlers are JavaScript, which has no such numbers
    const echo = createServer(async (request, response) => {
      bodies.push(await text(request));
      const isList = request.url?.startsWith("/v1/endpoints");
      response.end(isList ? '[{"id":"e1","name":"echo"}]' : `{"id":"j1","status":"COMPLETED","output":${long}}`);
    });
    await new Promise<void>((done) => echo.listen(0, "127.0.0.1", done));
    const url = `http://127.0.0.1:${(echo.address() as AddressInfo).port}`;
    const sent = await millrace(["run", "echo", long, "--json"], {
      env: { MILLRACE_URL: url, MILLRACE_API_KEY: "mr_any" },
    });
    await new Promise((done) => echo.close(done));
    expect(sent).toMatchObject({ exit: 0, out: expect.stringContaining(`"output":${long}`) });
    expect(bodies).toContainEqual(expect.stringContaining(`"input":${long}`));
  });

  it("takes the input from a file, or from standard input", async () => {
    const folder = mkdtempSync(join(tmpdir(), "millrace-cli-"));
    writeFileSync(join(folder, "input.json"), '{"text":"filed"}');
    const env = toServer(server);
    expect((await millrace(["run", "shout", "@input.json"], { env, folder })).out).toBe("FILED\n");
    expect((await millrace(["run", "shout", "-"], { env, input: '{"text":"piped"}' })).out).toBe("PIPED\n");
    rmSync(folder, { recursive: true });
  });

  it("submits once with one idempotency key", async () => {
    const once = () => run("run", "shout", '{"text":"once"}', "--idempotency-key", "order-1", "--json");
    const [first, again] = [JSON.parse((await once()).out), JSON.parse((await once()).out)];
    expect(again).toMatchObject({ id: first.id, output: "ONCE" });
    const refused = await run("run", "shout", "--idempotency-key", "order-1", "--batch", "inputs.jsonl");
    expect(refused).toMatchObject({ exit: 2, err: expect.stringContaining("leave --idempotency-key out") });
  });

  it("submits with a policy and a webhook", async () => {
    const policy = ["--execution-timeout", "60000", "--ttl", "600000", "--low-priority"];
    const { out } = await run("run", "idle", "--no-wait", "--webhook", "http://127.0.0.1:9/hook", ...policy);
    const { body: endpoints } = await call(server, "GET", "/v1/endpoints");
    const { id } = endpoints.find(({ name }: { name: string }) => name === "idle");
    const { body: story } = await call(server, "GET", `/v1/endpoints/${id}/jobs/${out.trim()}`);
    expect(story).toMatchObject({ executionTimeoutMs: 60_000, lowPriority: true, webhook: "http://127.0.0.1:9/hook" });
    expect(Date.parse(story.expiresAt) - Date.parse(story.createdAt)).toBe(600_000);
    await run("cancel", "idle", out.trim());
    const refused = await run("run", "idle", "--ttl", "5s");
    expect(refused).toMatchObject({ exit: 2, out: "" });
    expect(refused.err).toContain("--ttl must be whole milliseconds, from 10000 to 604800000.");
  });

  it("ends with 1 and the error if the job fails; --json prints the whole status either way", async () => {
    const failed = await run("run", "shout", '{"fail":true}');
    expect(failed).toMatchObject({ exit: 1, out: "", err: expect.stringMatching(/FAILED.*no such text/) });
    const whole = await run("run", "shout", '{"fail":true}', "--json");
    expect(whole.exit).toBe(1);
    expect(JSON.parse(whole.out)).toMatchObject({ status: "FAILED", error: expect.stringContaining("no such text") });
  });

  it.each([
    [["run", "shout", "{"], 2, /The input is not valid JSON/],
    [["run", "shout", "[1]"], 2, /must be a JSON object/],
    [["run", "shout", "@nowhere.json"], 2, /nowhere.json cannot be read/],
    [["run", "shuot", "{}"], 2, /Endpoint "shuot" does not exist. Did you mean "shout"\?/],
    [["run", "something-else", "{}"], 2, /Endpoint "something-else" does not exist\. {2}millrace endpoint list/],
    [["run"], 2, /missing required argument 'endpoint'/],
    [["rnu", "shout"], 2, /unknown command 'rnu'[\s\S]*Did you mean run/],
  ])("%j ends with %i, and says why", async (words, exit, why) => {
    expect(await run(...words)).toMatchObject({ exit, out: "", err: expect.stringMatching(why) });
  });

  it("shows on a terminal why the job waits; Ctrl-C says how to come back to it", async () => {
    const env = toServer(server);
    const { screen, exit } = await onTerminal(["run", "idle", "{}"], { env, after: "waiting" });
    expect(screen).toMatch(/waiting .* s? · position 1/);
    const plain = await onTerminal(["run", "idle", "{}"], { env: { ...env, NO_COLOR: "1" }, after: "waiting" });
    // biome-ignore lint/suspicious/noControlCharactersInRegex: what sets a colour begins with one
    expect(plain.screen).not.toMatch(/\x1b\[3\dm/);
    const [, id = ""] = /The job goes on without you: millrace status idle (\S+)/.exec(screen) ?? [];
    expect(exit).toBe(130);
    const { body } = await call(server, "GET", `/v2/${(await endpoint("idle")).id}/status/${id}`);
    expect(body.status).toBe("IN_QUEUE");
  });
});

const endpoint = async (name: string) => JSON.parse((await run("endpoint", "get", name, "--json")).out);

describe("The commands for a job", () => {
  it("submit without waiting, show the state, and wait for the end", async () => {
    const { out } = await run("run", "shout", '{"text":"later","ms":4000}', "--no-wait");
    const id = out.trim();
    const shown = await run("status", "shout", id);
    expect(shown.out).toMatch(new RegExp(`${id} {2}(IN_QUEUE|IN_PROGRESS)`));
    expect(await run("status", "shout", id, "--wait")).toMatchObject({ exit: 0, out: "LATER\n" });
    expect(JSON.parse((await run("status", "shout", id, "--json")).out)).toMatchObject({ id, status: "COMPLETED" });
  });

  it("stream prints what a job yields when it yields it, and why it failed", async (test) => {
    const gate = join(makeFolder(test), "gate");
    const begin = async (input: object) => (await run("run", "count", JSON.stringify(input), "--no-wait")).out.trim();
    const streamed = await begin({ gate });
    const streaming = startMillrace(test, ["stream", "count", streamed], { env: toServer(server) });
    await streaming.shows("first\n");
    expect(streaming.screen()).toBe("first\n");
    writeFileSync(gate, "");
    expect(await streaming.ended).toBe(0);
    expect(streaming.screen()).toBe('first\n{"n":2}\n');
    const again = await run("stream", "count", streamed);
    expect(again).toMatchObject({ exit: 0, out: "", err: expect.stringContaining("each is handed out once") });

    const { exit, out } = await run("stream", "count", await begin({ gate }), "--json");
    const lines = out
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect([exit, lines]).toMatchObject([0, [{ output: "first" }, { output: { n: 2 } }]]);
    expect(await run("stream", "count", await begin({ gate, fails: true }))).toMatchObject({
      exit: 1,
      out: "first\n",
      err: expect.stringMatching(/^✗ FAILED {2}.*no second/),
    });
  });

  it("retry runs a job that failed once more, under its id", async (test) => {
    const needs = join(makeFolder(test), "file");
    const failed = await run("run", "shout", JSON.stringify({ needs, text: "again" }), "--json");
    const { id } = JSON.parse(failed.out);
    expect([failed.exit, JSON.parse(failed.out).status]).toEqual([1, "FAILED"]);
    writeFileSync(needs, "");
    expect(await run("retry", "shout", id)).toEqual({ exit: 0, out: `${id}  IN_QUEUE\n`, err: "" });
    expect(await run("status", "shout", id, "--wait")).toMatchObject({ exit: 0, out: "AGAIN\n" });
    expect(await run("retry", "shout", id)).toMatchObject({ exit: 3, err: expect.stringContaining("is COMPLETED") });
  });

  it("cancel, retry and purge", async () => {
    const [first = "", second = ""] = [
      (await run("run", "idle", "--no-wait")).out.trim(),
      (await run("run", "idle", "--no-wait")).out.trim(),
    ];
    expect(await run("cancel", "idle", first)).toMatchObject({ exit: 0, out: `${first}  CANCELLED\n` });
    expect(await run("retry", "idle", second)).toMatchObject({
      exit: 3,
      err: expect.stringMatching(/IN_QUEUE|waits|queue/i),
    });
    const asked = await run("purge", "idle");
    expect(asked).toMatchObject({
      exit: 2,
      err: expect.stringMatching(/cancels the \d+ waiting jobs? of "idle".*purge idle --yes/),
    });
    expect((await run("purge", "idle", "--yes")).out).toMatch(/^\d+ jobs? cancelled\n$/);
    expect(await run("purge", "idle")).toEqual({ exit: 0, out: 'No job waits at "idle".\n', err: "" });
    expect(JSON.parse((await run("health", "idle", "--json")).out)).toMatchObject({ jobs: { inQueue: 0 } });
  });

  it("list jobs as a table, or as JSON", async () => {
    await run("run", "shout", '{"text":"listed"}');
    const { out } = await run("requests", "shout", "--limit", "5");
    expect(out.split("\n")[0]).toMatch(/^job +state +waited +ran +retries +why$/);
    expect(out).toMatch(/COMPLETED +[\d.]+ m?s +[\d.]+ m?s/);
    const found = JSON.parse((await run("requests", "shout", "--limit", "1", "--json")).out);
    expect(found).toMatchObject([{ status: "COMPLETED", output: "LISTED" }]);
  });
});
