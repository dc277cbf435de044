import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { stripVTControlCharacters } from "node:util";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { makeHandler } from "../e2e/handlers.js";
import { call, journal, makeEndpoint, startServer, type TestServer } from "../harness.js";
import { millrace, millraceHere, onTerminal, startMillrace, toServer } from "./millrace.js";

let server: TestServer;
let folder: string;
const undos: (() => unknown)[] = [];
const ending = { onTestFinished: (undo: () => unknown) => void undos.unshift(undo) };
const handler = `
import { appendFileSync, existsSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
export default async ({ n, journal, gate, fail }) => {
  if (journal) appendFileSync(journal, n + "\\n");
  while (gate && !existsSync(gate)) await sleep(20);
  if (fail) throw new Error("number " + n);
  return n * 2;
};`;
beforeAll(async () => {
  server = await startServer({ MILLRACE_RATE_LIMITS: "off" });
  await makeEndpoint(server, makeHandler(ending, handler), { name: "double", workersMax: 2, idleTimeout: 60 });
});
afterAll(async () => {
  await server?.end();
  for (const undo of undos) await undo();
});
beforeEach((test) => {
  folder = mkdtempSync(join(tmpdir(), "millrace-batch-"));
  test.onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
});

const inputs = (rows: readonly object[]) =>
  writeFileSync(join(folder, "inputs.jsonl"), rows.map((row) => `${JSON.stringify(row)}\n`).join(""));
const words = ["run", "double", "--batch", "inputs.jsonl", "--out", "results.jsonl"];
const run = (...more: string[]) => millraceHere([...words, ...more], { env: toServer(server), folder });
const results = () =>
  readFileSync(join(folder, "results.jsonl"), "utf8")
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line))
    .sort((one, other) => one.line - other.line);

describe("millrace run --batch", () => {
  it("runs a job for each line, and says which have failed", async () => {
    inputs(Array.from({ length: 40 }, (_, n) => ({ n, ...(n === 7 ? { fail: true } : {}) })));
    expect(await run("--at-once", "5")).toMatchObject({
      exit: 1,
      out: "40 jobs, of which 1 failed: results.jsonl\n",
      err: "",
    });
    expect(results()).toHaveLength(40);
    for (const { line, status, output, error } of results())
      if (line === 8) expect([status, error]).toEqual(["FAILED", expect.stringContaining("number 7")]);
      else expect([status, output]).toEqual(["COMPLETED", (line - 1) * 2]);
    expect(await run()).toMatchObject({ exit: 2, err: expect.stringContaining("name another file") });
  });

  it("goes on after it was interrupted or killed, and runs nothing twice", async (test) => {
    const [gate, ran] = [join(folder, "gate"), join(folder, "ran")];
    inputs(Array.from({ length: 6 }, (_, n) => ({ n, journal: ran, ...(n < 2 ? {} : { gate }) })));
    const first = startMillrace(test, [...words, "--at-once", "4"], { env: toServer(server), folder });
    await expect.poll(() => readFileSync(join(folder, "results.jsonl"), "utf8"), { timeout: 20_000 }).toMatch(/\n.*\n/);
    await expect.poll(() => journal(ran).length, { timeout: 20_000 }).toBe(4);
    first.interrupt();
    expect(await first.ended).toBe(130);
    expect(first.screen()).toContain("goes on without you");
    writeFileSync(
      join(folder, "results.jsonl"),
      `${readFileSync(join(folder, "results.jsonl"), "utf8")}{"line":3,"sta`,
    );
    writeFileSync(gate, "");
    expect(await run("--json")).toMatchObject({
      exit: 0,
      out: '{"jobs":6,"failed":0,"expired":0,"out":"results.jsonl"}\n',
    });
    expect(results().map(({ output }) => output)).toEqual([0, 2, 4, 6, 8, 10]);
    expect(journal(ran).sort()).toEqual(["0", "1", "2", "3", "4", "5"]);
  });

  it("that is interrupted leaves the terminal with its cursor and its long lines", async () => {
    inputs([{ n: 1, gate: join(folder, "open") }]);
    const { exit, screen } = await onTerminal(words, { env: toServer(server), folder, after: "0/1" });
    writeFileSync(join(folder, "open"), "");
    expect(exit).toBe(130);
    for (const mode of ["?25", "?7"])
      expect(screen.lastIndexOf(`\u001b[${mode}h`)).toBeGreaterThan(screen.lastIndexOf(`\u001b[${mode}l`));
    const [before, advice] = screen.split("What was submitted goes on without you");
    expect(before?.lastIndexOf("\u001b[?7h"), "its last words stand on lines of their own").toBeGreaterThan(0);
    expect(advice).toContain("the same command again");
    expect(stripVTControlCharacters(before ?? "")).toMatch(/ 0\/1 {2}0\.0 a second\s+\^C\s*\n$/);
  });

  it("shows on a terminal how far it is", async () => {
    inputs([{ n: 1 }, { n: 2 }]);
    const { exit, screen } = await onTerminal(words, { env: toServer(server), folder });
    expect(exit).toBe(0);
    expect(stripVTControlCharacters(screen)).toMatch(/ 2\/2 {2}[\d.]+ a second {2}0 ms left/);
  });

  it.each([
    ['{"n":1}\n[2]\n', /^Line 2 of .*inputs.jsonl must be a JSON object/],
    ['{"n":1}\n{"n":\n', /^Line 2 of .*inputs.jsonl is not valid JSON/],
  ])("refuses %j before anything is submitted", async (text, why) => {
    writeFileSync(join(folder, "inputs.jsonl"), text);
    expect(await run()).toMatchObject({ exit: 2, err: expect.stringMatching(why) });
  });

  it("runs its jobs with the policy that is asked for", async () => {
    inputs([{ n: 1 }, { n: 2 }]);
    expect(await run("--execution-timeout", "60000")).toMatchObject({ exit: 0 });
    const { body: endpoints } = await call(server, "GET", "/v1/endpoints");
    for (const { id } of results()) {
      const { body: story } = await call(server, "GET", `/v1/endpoints/${endpoints[0].id}/jobs/${id}`);
      expect(story.executionTimeoutMs).toBe(60_000);
    }
    expect(await run("--ttl", "1")).toMatchObject({ exit: 2, err: expect.stringContaining("--ttl must be") });
  });

  it("counts the jobs that were deleted with their results, and fails", async (test) => {
    inputs([{ n: 1 }]);
    const late = createServer((request, response) => {
      const isList = request.url?.startsWith("/v1/endpoints");
      response.end(isList ? '[{"id":"e1","name":"double"}]' : '{"id":"j1","status":"COMPLETED","expired":true}');
    });
    await new Promise<void>((done) => late.listen(0, "127.0.0.1", done));
    test.onTestFinished(() => void late.close());
    const env = {
      MILLRACE_URL: `http://127.0.0.1:${(late.address() as AddressInfo).port}`,
      MILLRACE_API_KEY: "mr_any",
    };
    const out = "1 jobs, of which 0 failed and 1 expired before their results were fetched: results.jsonl\n";
    expect(await millraceHere(words, { env, folder })).toMatchObject({ exit: 1, out });
    expect(results()).toMatchObject([{ line: 1, id: "j1", status: "EXPIRED" }]);
  });

  it("needs a file for the results, and one that is there for the inputs", async () => {
    const missing = await millrace(words.slice(0, 4), { env: toServer(server), folder });
    expect(missing).toMatchObject({ exit: 2, err: expect.stringContaining("Name a file for the results.") });
    expect(await run()).toMatchObject({ exit: 2, err: expect.stringMatching(/inputs.jsonl cannot be read/) });
    const piped = await run("--batch", "-");
    expect(piped).toMatchObject({ exit: 2, err: expect.stringContaining("put them in a file.  --batch inputs.jsonl") });
  });
});
