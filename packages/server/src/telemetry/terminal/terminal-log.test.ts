import { Writable } from "node:stream";
import { stripVTControlCharacters } from "node:util";
import { shortName } from "@millrace/api";
import { beforeEach, describe, expect, it } from "vitest";
import { limits } from "../../limits/index.js";
import { TerminalLog, type TerminalParts } from "./terminal-log.js";
import type { WorkerLine } from "./worker-lines.js";

const startAt = new Date(2026, 10, 28, 12, 4, 31).getTime();
const of = { endpointId: "e1", workerId: "worker00000001" };

let now: number;
let due: { at: number; call: () => void }[];
let written: string;
let error: string | undefined;
let prints: (lines: WorkerLine[]) => void;
beforeEach(() => {
  [now, due, written, error] = [startAt, [], "", undefined];
});

function open(more: Partial<TerminalParts> = {}): TerminalLog {
  const out = new Writable({
    write: (chunk, _encoding, done) => {
      written += chunk;
      done();
    },
  });
  const queue: WorkerLine[][] = [];
  let wake = () => {};
  prints = (lines) => {
    queue.push(lines);
    wake();
  };
  return new TerminalLog({
    out,
    columns: 80,
    isVerbose: false,
    isQuiet: false,
    packageAdvice: "echo {package} >> requirements.txt",
    clock: { now: () => now, after: (ms, call) => void due.push({ at: now + ms, call }) },
    endpointName: (id) => ({ e1: "shout", e2: "an-endpoint-with-a-long-name" })[id],
    linesOf: async function* () {
      for (;;) {
        while (queue.length > 0) yield queue.shift() as WorkerLine[];
        await new Promise<void>((done) => (wake = done));
      }
    },
    errorOf: async () => error,
    ...more,
  });
}

/** Lets time pass; returns what was written meanwhile, without colours. */
async function pass(ms: number): Promise<string[]> {
  const until = now + ms;
  await new Promise((done) => setImmediate(done));
  for (;;) {
    const [next] = due.filter(({ at }) => at <= until).sort((one, other) => one.at - other.at);
    if (!next) break;
    due.splice(due.indexOf(next), 1);
    now = next.at;
    next.call();
  }
  now = until;
  const lines = stripVTControlCharacters(written).split("\n").slice(0, -1);
  written = "";
  return lines;
}

const job = (n: number) => `0199aaaa-0000-7000-8000-00000000${String(n).padStart(4, "0")}-u1`;
const submitted = (n = 1) => ({ type: "job.submitted", endpointId: "e1", jobId: job(n), requestId: "r" }) as const;
const taken = (n = 1, delayMs = 12) => ({ type: "job.taken", ...of, jobId: job(n), delayMs }) as const;
const ended = (status: "COMPLETED" | "FAILED" | "CANCELLED", n = 1) =>
  ({ type: "job.ended", endpointId: "e1", jobId: job(n), status, executionMs: 212 }) as const;
const started = { type: "worker.started", ...of, provider: "process", ref: {} } as const;
const head = "  12:04:31  shout           ";

describe("A terminal shows", () => {
  it("one line for each event, with the names of endpoints and short ids", async () => {
    const log = open();
    log.emit(submitted());
    log.emit({ type: "endpoint.scaled", endpointId: "e1", outcome: "start 1", reason: "a job waits" });
    log.emit(started);
    log.emit({ type: "worker.ready", ...of, afterMs: 1_900 });
    log.emit(taken(1, 2_100));
    log.emit(ended("COMPLETED"));
    const name = shortName(of.workerId);
    expect(await pass(1_000)).toEqual([
      `${head} + job 000001  queued`,
      `${head} · worker ${name}  starting: a job waits`,
      `${head} · worker ${name}  ready after 1.9 s`,
      `${head} ✓ job 000001  waited 2.1 s (start 1.9 s)  ran 212 ms`,
    ]);
  });

  it("what a handler prints between the events, in the order of time, and what its SDK reports not at all", async () => {
    const log = open();
    log.emit(started);
    await pass(50);
    const printedAt = now;
    now += 20;
    log.emit(ended("COMPLETED"));
    prints([
      { atUs: printedAt * 1_000, text: "\u001b[32mloading\u001b[0m \u001b[2Jmodel" },
      { atUs: printedAt * 1_000 + 1, text: "INFO   | job | Started.", level: "INFO", message: "Started." },
      { atUs: printedAt * 1_000 + 2, text: "INFO   | job | half way", level: "INFO", message: "half way" },
    ]);
    expect((await pass(1_000)).slice(1)).toEqual([
      `${head}   ${shortName(of.workerId)} │ loading \\x1b[2Jmodel`,
      `${head}   ${shortName(of.workerId)} │ half way`,
      `${head} ✓ job 000001  ran 212 ms`,
    ]);
  });

  it("a traceback once, without the package's own frames, then how often it came again", async () => {
    const log = open();
    const traceback = [
      "Traceback (most recent call last):",
      '  File "/usr/lib/python3/site-packages/runpod/serverless/modules/rp_job.py", line 257, in run_job',
      "    handler_return = handler(job)",
      '  File "/home/me/handler.py", line 7, in handler',
      '    return job["input"]["text"]',
      "KeyError: 'text'",
    ].join("\n");
    error = JSON.stringify({
      error_type: "<class 'KeyError'>",
      error_message: "'text'",
      error_traceback: `${traceback}\n`,
    });
    log.emit(ended("FAILED"));
    const lines = await pass(1_000);
    expect(lines[0]).toBe(`${head} ✗ job 000001  KeyError: 'text'  ran 212 ms`);
    expect(lines.slice(1).map((line) => line.trimStart())).toEqual([
      "Traceback (most recent call last):",
      'File "/home/me/handler.py", line 7, in handler',
      'return job["input"]["text"]',
      "KeyError: 'text'",
    ]);
    for (let n = 2; n < 4; n++) log.emit(ended("FAILED", n));
    expect((await pass(1_000)).map((line) => line.trim()).filter((line) => line.startsWith("the same"))).toEqual([
      "the same traceback as before, 2 times now",
      "the same traceback as before, 3 times now",
    ]);
  });

  it("any other end in words, and a plain error with its stack below", async () => {
    const log = open();
    log.emit(ended("CANCELLED", 2));
    error = `TypeError: no text\n    at handler (handler.ts:2:9)${"\n    at f (x.ts:1:1)".repeat(100)}`;
    log.emit(ended("FAILED"));
    const lines = await pass(1_000);
    expect(lines[0]).toBe(`${head} ✗ job 000002  CANCELLED  ran 212 ms`);
    expect(lines[1]).toBe(`${head} ✗ job 000001  TypeError: no text  ran 212 ms`);
    expect(lines).toHaveLength(2 + limits.terminalTraceLines + 1);
    expect(lines.at(-1)).toMatch(/… 61 more lines/);
  });

  it("living workers under different names, and an end that was announced not again", async () => {
    const log = open();
    const name = shortName(of.workerId);
    let same = "";
    for (let n = 0; same === ""; n++) if (shortName(`worker-${n}`) === name) same = `worker-${n}`;
    for (const workerId of [of.workerId, same]) log.emit({ ...started, workerId });
    log.emit({ type: "worker.stopping", ...of, why: "idle for 5 s" });
    log.emit({ type: "worker.ended", ...of, exit: { code: 0 } as never, why: "exit code 0" });
    const lines = (await pass(1_000)).map((line) => line.slice(head.length + 3));
    expect(lines).toEqual([
      `worker ${name}  starting`,
      `worker ${name}-2  starting`,
      `worker ${name}  stopping: idle for 5 s`,
    ]);
  });

  it("what workers print that fail at their start once, and what the first one after them prints", async () => {
    const log = open();
    const crash = async (workerId: string, failedStarts: number) => {
      log.emit({ ...started, workerId });
      await pass(10);
      prints([{ atUs: now * 1_000, text: "no weights here" }]);
      await pass(10);
      const why = "exit code 1: Traceback (most recent call last):\n  File x\nKeyError: 'w'";
      log.emit({ type: "worker.startFailed", endpointId: "e1", workerId, failedStarts, why });
      log.emit({ type: "worker.ended", endpointId: "e1", workerId, exit: { code: 1 } as never, why: "exit code 1" });
    };
    await crash("worker-a", 1);
    await crash("worker-b", 2);
    const lines = (await pass(1_000)).map((line) => line.slice(head.length + 1));
    const [a, b] = [shortName("worker-a"), shortName("worker-b")];
    expect(lines).toEqual([
      `· worker ${a}  starting`,
      `  ${a} │ no weights here`,
      `! worker ${a}  did not start: exit code 1: KeyError: 'w'`,
      `· worker ${b}  starting`,
      `! worker ${b}  did not start, 2 times in a row: exit code 1: KeyError: 'w'`,
    ]);
    log.emit({ ...started, workerId: "worker-c" });
    log.emit({ type: "worker.ready", endpointId: "e1", workerId: "worker-c", afterMs: 5 });
    await pass(10);
    prints([{ atUs: now * 1_000, text: "no weights here" }]);
    expect((await pass(1_000)).at(-1)).toContain(`${shortName("worker-c")} │ no weights here`);
  });

  it("what it can hold, and how much it left out", async () => {
    const log = open();
    for (let n = 0; n < limits.terminalLinesHeld + 500; n++) log.emit(submitted(n));
    const lines = await pass(1_000);
    expect(lines).toHaveLength(limits.terminalLinesHeld + 1);
    expect(lines.at(-1)).toMatch(/… 500 lines left out/);
  });

  it.each([
    ["all details with whole ids if it is verbose", { isVerbose: true }, 4],
    ["only what needs attention if it is quiet", { isQuiet: true }, 1],
  ])("%s", async (_, more, count) => {
    const log = open(more);
    for (const event of [submitted(), taken(), ended("COMPLETED")]) log.emit(event);
    log.emit({ type: "job.givenBack", ...of, jobId: job(2), excused: true, why: "its worker was lost" });
    const lines = await pass(1_000);
    expect(lines).toHaveLength(count);
    expect(lines.at(-1)).toMatch(/! job \S+ {2}back in the queue: its worker was lost/);
    if (count === 4) expect(lines[1]).toContain(`job ${job(1)}  at ${of.workerId}`);
  });
});
