import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { StatusBody } from "@millrace/api";
import { afterEach, beforeEach, expect, it } from "vitest";
import type { Calls } from "../calls.js";
import { exits, Failure } from "../exit.js";
import { Terminal } from "../output/terminal.js";
import { runBatch } from "./batch.js";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "millrace-batch-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

type Answer = Partial<StatusBody> | Error;

/** Runs a batch of one job against a server that answers like this, call after call. */
async function run(...answers: Answer[]) {
  const counts = await runLines(["{}"], answers);
  return { ...counts, result: results()[0] };
}

const out = () => join(folder, "results.jsonl");
const results = () =>
  readFileSync(out(), "utf8")
    .split("\n")
    .filter(Boolean)
    .map((line) => JSON.parse(line));

async function runLines(lines: string[], answers: Answer[], { endpoint = "e", to = out() } = {}) {
  const calls = {
    call: async () => {
      const answer = answers.shift();
      if (answer instanceof Error) throw answer;
      return answer;
    },
  } as unknown as Calls;
  const inputs = join(folder, "inputs.jsonl");
  writeFileSync(inputs, `${lines.join("\n")}\n`);
  const terminal = new Terminal({ in: process.stdin, out: process.stdout, err: process.stderr }, true);
  return runBatch(calls, terminal, { endpoint, inputs, out: to, atOnce: 1 });
}

const done = { id: "j", status: "COMPLETED" as const, output: 1 };
const revoked = new Failure(exits.refused, "no such key", undefined, false, 401);

it("A job whose result is not kept any more is EXPIRED, whatever it was, and does not end the batch", async () => {
  expect(await run({ id: "j", status: "COMPLETED", expired: true })).toMatchObject({
    count: 1,
    failed: 0,
    expired: 1,
    result: { id: "j", status: "EXPIRED", error: expect.stringMatching(/was COMPLETED, .* not kept any more/) },
  });
});

it("What is refused for now, a submission or a wait, is tried again", async () => {
  const busy = new Failure(exits.refused, "too much", undefined, true);
  expect(await run(busy, { id: "j", status: "IN_QUEUE" }, busy, done)).toMatchObject({
    failed: 0,
    result: { id: "j", output: 1 },
  });
});

it("A server that is started again is waited for", async () => {
  const away = new Failure(exits.unreachable, "No server answers.");
  expect(await run(away, { id: "j", status: "IN_QUEUE" }, away, away, done)).toMatchObject({ count: 1, failed: 0 });
}, 20_000);

it("An input that is refused is a result of its own, and the others go on", async () => {
  const large = new Failure(exits.refused, "The body is too large.", undefined, false, 413);
  const queued = { id: "j", status: "IN_QUEUE" as const };
  expect(await runLines(['{"a":1}', "{}"], [large, queued, done])).toEqual({ count: 2, failed: 1, expired: 0 });
  expect(results()).toEqual([
    { line: 1, status: "REFUSED", error: "The body is too large." },
    { line: 2, id: "j", status: "COMPLETED", output: 1 },
  ]);
});

it("What refuses all jobs ends the batch, says where it goes on, and does", async () => {
  await expect(runLines(["{}"], [revoked])).rejects.toThrow(
    /no such key What has ended is in .*results\.jsonl: the same/,
  );
  expect(await run({ id: "j", status: "IN_QUEUE" }, done)).toMatchObject({ count: 1, failed: 0 });
});

it("Another batch does not go on with the results: of other inputs, of another endpoint, or of a run that goes on", async () => {
  await expect(runLines(["{}"], [revoked])).rejects.toThrow();
  await expect(runLines(['{"a":1}'], [])).rejects.toThrow(/The inputs have changed/);
  await expect(runLines(["{}"], [], { endpoint: "other" })).rejects.toThrow(/results of endpoint e: name another file/);
  const state = JSON.parse(readFileSync(`${out()}.batch`, "utf8"));
  writeFileSync(`${out()}.batch`, JSON.stringify({ ...state, pid: process.ppid }));
  await expect(runLines(["{}"], [])).rejects.toThrow(/writes .* already/);
});

it("Files that cannot be used are named in words", async () => {
  await expect(runLines(["{}"], [], { to: join(folder, "none/results.jsonl") })).rejects.toThrow(/cannot be written/);
  await expect(runLines(["{}"], [revoked])).rejects.toThrow();
  writeFileSync(out(), "garbage\n");
  await expect(runLines(["{}"], [])).rejects.toThrow(/Line 1 of .* is not a result of a batch/);
});
