import { exits } from "./exit.js";
import { runProgram } from "./program.js";

/** Runs the command that this process was started with, with its signals and streams. */
export async function runCommandLine({
  version,
  commit,
}: {
  version: string;
  commit: string | undefined;
}): Promise<void> {
  const interruption = new AbortController();
  let endsItself = false;
  const signals = ["SIGINT", "SIGTERM"] as const;
  const interrupt = () => {
    interruption.abort();
    if (!endsItself) process.exit(exits.interrupted);
  };
  for (const signal of signals) process.on(signal, interrupt);
  process.stdout.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code !== "EPIPE") throw error; // whoever read the output has enough
    process.exit(exits.done);
  });

  process.exitCode = await runProgram(process.argv.slice(2), {
    env: process.env,
    folder: process.cwd(),
    streams: { in: process.stdin, out: process.stdout, err: process.stderr },
    interrupted: interruption.signal,
    endsItself: () => {
      endsItself = true;
    },
    leavesSignals: () => {
      for (const signal of signals) process.off(signal, interrupt);
    },
    version: commit === undefined ? version : `${version} (${commit})`,
  });
}
