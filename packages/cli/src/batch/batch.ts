import { createHash } from "node:crypto";
import { createReadStream, statSync } from "node:fs";
import { createInterface } from "node:readline";
import type { Policy } from "@millrace/api";
import type { Calls } from "../calls.js";
import { parseExactly } from "../exact-json.js";
import { exits, Failure } from "../exit.js";
import { reasonOf } from "../files.js";
import { ended, submitted } from "../jobs.js";
import type { Terminal } from "../output/terminal.js";
import { Results } from "./results.js";

export interface Batch {
  readonly endpoint: string;
  /** A file with a job's input on each line. */
  readonly inputs: string;
  /** The file for their results. */
  readonly out: string;
  /** How each is run; as the server does it if absent. */
  readonly policy?: Policy;
  /** How many jobs are submitted and have not ended, at most. */
  readonly atOnce: number;
}

interface Line {
  readonly no: number;
  readonly input: object;
}

/** How a batch has ended: of `count` jobs some have failed, and the server has deleted others with their results. */
export interface BatchEnd {
  readonly count: number;
  readonly failed: number;
  readonly expired: number;
}

/** Runs a job for each line of a file. What an earlier run has done is not done again. */
export async function runBatch(calls: Calls, terminal: Terminal, batch: Batch): Promise<BatchEnd> {
  let total = 0;
  const inputs = createHash("sha256");
  // all are checked before the first is submitted
  for await (const { input } of linesOf(batch.inputs)) {
    inputs.update(`${JSON.stringify(input)}\n`);
    total++;
  }
  const results = new Results(batch.out, { endpoint: batch.endpoint, inputs: inputs.digest("hex") });
  const bar = terminal.bar(total, results.count);
  const running = new Set<Promise<void>>();
  try {
    for await (const line of linesOf(batch.inputs)) {
      if (results.has(line.no)) continue;
      const job = runLine(calls, batch, line, results)
        .then(() => bar.update(results.count))
        .finally(() => running.delete(job));
      job.catch(() => {}); // the next wait for any of them reports it
      running.add(job);
      if (running.size >= batch.atOnce) await Promise.race(running);
    }
    await Promise.all(running);
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    const { exit, message, hint } = error;
    const why = `${message} What has ended is in ${batch.out}: the same command goes on from there.`;
    throw new Failure(exit, why, hint);
  } finally {
    bar.end();
    results.leave();
  }
  results.close();
  return { count: results.count, failed: results.failed, expired: results.expired };
}

/** The inputs of a file, one at a time. */
async function* linesOf(file: string): AsyncGenerator<Line> {
  let no = 0;
  const stream = createReadStream(file);
  const opened = new Promise<void>((done, fail) => stream.once("open", () => done()).once("error", fail));
  await opened.catch((error: Error) => {
    throw new Failure(exits.usage, `${file} cannot be read: ${reasonOf(error)}.`, "--batch inputs.jsonl");
  });
  if (statSync(file).isDirectory()) throw new Failure(exits.usage, `${file} is a folder.`, "--batch inputs.jsonl");
  for await (const text of createInterface({ input: stream })) {
    no++;
    if (text.trim() !== "") yield { no, input: inputIn(file, no, text) };
  }
}

function inputIn(file: string, no: number, text: string): object {
  let value: unknown;
  try {
    value = parseExactly(text);
  } catch (error) {
    throw new Failure(exits.usage, `Line ${no} of ${file} is not valid JSON: ${(error as Error).message}`);
  }
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value;
  throw new Failure(exits.usage, `Line ${no} of ${file} must be a JSON object, the input of a job.`);
}

/** Refusals that say something of the input, and nothing of the other lines. */
const ofInput: ReadonlySet<number> = new Set([400, 413, 422]);

async function runLine(calls: Calls, batch: Batch, { no, input }: Line, results: Results): Promise<void> {
  const { endpoint, policy } = batch;
  const submission = { input, ...(policy && { policy }) };
  // the same key leads to the same job, so that nothing runs twice
  const job = await submitted(calls, endpoint, submission, `${results.id}-${no}`).catch((error: unknown) => {
    if (!(error instanceof Failure) || !ofInput.has(error.status ?? 0)) throw error;
    results.add({ line: no, status: "REFUSED", error: error.message });
  });
  if (!job) return;
  const { id, status, expired } = job;
  if (expired) {
    const why = `The job was ${status}, and its result is not kept any more: the batch was taken up too late.`;
    results.add({ line: no, id, status: "EXPIRED", error: why });
    return;
  }
  const { output, error, status: end } = await ended(calls, endpoint, id);
  results.add({ line: no, id, status: end, ...(error === undefined ? { output } : { error }) });
}
