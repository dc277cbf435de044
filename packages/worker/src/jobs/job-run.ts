import type { Handler, Job } from "../handler/handler.js";
import { readableError, toJson } from "../json.js";
import type { ChunkLine } from "./chunk-line.js";

/** The result of a job: JSON text of its output, or an error for its user to read. */
export type Outcome = ({ readonly output: string } | { readonly error: string }) & { readonly isStream: boolean };

interface Run {
  readonly handler: Handler;
  readonly input: unknown;
  readonly job: Job;
  readonly aggregate: boolean;
  /** Opens the line for chunks, with the first job that streams. */
  openChunks(): Pick<ChunkLine, "add" | "drained">;
}

/** Runs a handler to its end. Never rejects: an error that the handler throws is the outcome. */
export async function runJob(run: Run): Promise<Outcome> {
  let isStream = false;
  try {
    const returned = await run.handler(run.input, run.job);
    const chunks = iteratorOf(returned);
    isStream = chunks !== undefined;
    const output = chunks ? await stream(chunks, run) : toJson(returned, "the handler's output");
    return { output, isStream };
  } catch (error) {
    return { error: run.job.signal.aborted ? "stopped" : readableError(error), isStream };
  }
}

async function stream(chunks: Iterable<unknown> | AsyncIterable<unknown>, run: Run): Promise<string> {
  const line = run.openChunks();
  const kept: string[] = [];
  try {
    // for-await also iterates plain generators, and tells a generator that is left early to clean up.
    for await (const value of chunks) {
      if (run.job.signal.aborted) throw new Error("stopped");
      const chunk = toJson(value, "a chunk of the handler's output");
      if (run.aggregate) kept.push(chunk);
      await line.add(chunk);
    }
  } finally {
    // The job's end must not overtake its chunks, whether it succeeds or fails.
    await line.drained();
  }
  return `[${kept.join(",")}]`;
}

/** Generators and async iterables stream; arrays, strings and maps are plain values. */
function iteratorOf(value: unknown): Iterable<unknown> | AsyncIterable<unknown> | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  if (Symbol.asyncIterator in value) return value as AsyncIterable<unknown>;
  const isGenerator = Symbol.iterator in value && "next" in value && typeof value.next === "function";
  return isGenerator ? (value as unknown as Iterable<unknown>) : undefined;
}
