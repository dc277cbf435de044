import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { StatusBody } from "@millrace/api";
import { afterEach, beforeEach, expect, it } from "vitest";
import type { Calls } from "../calls.js";
import { exits, Failure } from "../exit.js";
import { Terminal } from "../terminal.js";
import { runBatch } from "./batch.js";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "millrace-batch-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

/** Runs a batch of one job against a server that answers like this, call after call. */
async function run(...answers: (Partial<StatusBody> | Error)[]) {
  const calls = {
    call: async () => {
      const answer = answers.shift();
      if (answer instanceof Error) throw answer;
      return answer;
    },
  } as unknown as Calls;
  const [inputs, out] = [join(folder, "inputs.jsonl"), join(folder, "results.jsonl")];
  writeFileSync(inputs, "{}\n");
  const terminal = new Terminal({ in: process.stdin, out: process.stdout, err: process.stderr }, true);
  const counts = await runBatch(calls, terminal, { endpoint: "e", inputs, out, atOnce: 1 });
  return { ...counts, result: JSON.parse(readFileSync(out, "utf8")) };
}

it("A job whose result is not kept any more is a result of its own, and does not end the batch", async () => {
  expect(await run({ id: "j", status: "COMPLETED", expired: true })).toMatchObject({
    count: 1,
    failed: 1,
    result: { id: "j", error: expect.stringContaining("not kept any more") },
  });
});

it("What is refused for now, a submission or a wait, is tried again", async () => {
  const busy = new Failure(exits.refused, "too much", undefined, true);
  const done = { id: "j", status: "COMPLETED" as const, output: 1 };
  expect(await run(busy, { id: "j", status: "IN_QUEUE" }, busy, done)).toMatchObject({
    failed: 0,
    result: { id: "j", output: 1 },
  });
});
