import { runJob } from "../jobs/job-run.js";
import { openLog } from "../log.js";
import type { Handler, Job } from "./handler.js";

/**
 * Runs a handler once without a server: prints the output as JSON on stdout, and everything else on stderr. A streaming
 * handler's output is the list of its chunks. Returns the exit code: 0, or 1 if the handler failed.
 */
export async function runOnce(handler: Handler, inputText: string): Promise<number> {
  let input: unknown;
  try {
    input = JSON.parse(inputText);
  } catch (error) {
    process.stderr.write(`The test input is not JSON: ${(error as Error).message}\n`);
    return 1;
  }
  const outcome = await runJob({
    handler,
    input,
    job: testJob(),
    aggregate: true,
    openChunks: () => ({ add: async () => {}, drained: async () => {} }),
  });
  if ("error" in outcome) await print(process.stderr, outcome.error);
  else await print(process.stdout, outcome.output);
  return "error" in outcome ? 1 : 0;
}

function testJob(): Job {
  const log = openLog("test", (line) => process.stderr.write(line));
  return {
    id: "test",
    signal: new AbortController().signal,
    log,
    progress: async (value) => log.info("progress:", value),
    refreshWorker: () => log.info("a fresh worker was asked for"),
  };
}

/** Resolves when the text is written: writes to a pipe are asynchronous, and exiting would cut them off. */
function print(stream: NodeJS.WriteStream, text: string): Promise<void> {
  return new Promise((resolve) => stream.write(`${text}\n`, () => resolve()));
}
