import type { Handler, ServeOptions } from "./handler/handler.js";
import { limits } from "./limits.js";
import { missingVariables, readSettings } from "./settings.js";
import { Worker } from "./worker.js";

let isServing = false;

/** True once `serve` was called in this process: then nothing else has to start the handler. */
export function hasServed(): boolean {
  return isServing;
}

/**
 * Serves a handler: takes jobs, runs the handler, and reports what it returns or throws. Resolves when the worker has
 * stopped: after SIGTERM or SIGINT, once the running jobs are done and their results have arrived. A second signal
 * aborts those jobs, a third one ends the process.
 *
 * With `--test-input '<json>'` (or MILLRACE_TEST_INPUT) the handler runs once, here, without a server. Without either
 * the input or the worker protocol's variables it says so and exits with code 2.
 */
// biome-ignore lint/suspicious/noExplicitAny: as in Handler
export async function serve<Input = any, Output = unknown>(
  handler: Handler<Input, Output>,
  options: ServeOptions = {},
): Promise<void> {
  if (typeof handler !== "function") throw new TypeError("serve needs a function: the handler of the jobs");
  isServing = true;
  const testInput = testInputOf(process.argv, process.env);
  if (testInput !== undefined) {
    const { runOnce } = await import("./handler/test-run.js");
    process.exit(await runOnce(handler as Handler, testInput));
  }
  refuseWithoutServer();
  const worker = new Worker(handler as Handler, options, readSettings(process.env));
  const unlisten = stopOnSignals(worker);
  const ending = await worker.run();
  unlisten();
  if (ending === "disowned") process.exitCode = 1;
  // Anything that the handler left open (a pool, a timer) must not keep a stopped worker alive.
  setTimeout(() => process.exit(), limits.lingerMs).unref();
}

function testInputOf(args: readonly string[], env: NodeJS.ProcessEnv): string | undefined {
  const at = args.findIndex((arg) => arg === "--test-input" || arg.startsWith("--test-input="));
  if (at < 0) return env.MILLRACE_TEST_INPUT;
  const arg = args[at] as string;
  return arg.includes("=") ? arg.slice(arg.indexOf("=") + 1) : (args[at + 1] ?? "");
}

function refuseWithoutServer(): void {
  const missing = missingVariables(process.env);
  if (missing.length === 0) return;
  process.stderr.write(
    `This is a worker, but nothing tells it where its server is: ${missing.join(" and ")} not set. ` +
      "Start it through an endpoint, or try its handler here with --test-input '<json>'.\n",
  );
  process.exit(2);
}

function stopOnSignals(worker: Worker): () => void {
  let signals = 0;
  const listen = () => {
    signals += 1;
    if (signals === 1) worker.stop();
    else if (signals === 2) worker.stopJobs();
    else process.exit(1);
  };
  process.on("SIGTERM", listen);
  process.on("SIGINT", listen);
  return () => {
    process.off("SIGTERM", listen);
    process.off("SIGINT", listen);
  };
}
