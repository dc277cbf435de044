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
  // nohup leaves us no terminal, and wants us to outlive the one that closes
  const hasTerminal = [process.stdin, process.stdout, process.stderr].some(({ isTTY }) => isTTY);
  const signals: NodeJS.Signals[] = ["SIGINT", "SIGTERM", ...(hasTerminal ? (["SIGHUP"] as const) : [])];
  const interrupt = () => {
    interruption.abort();
    if (!endsItself) process.exit(exits.interrupted);
  };
  for (const signal of signals) process.on(signal, interrupt);
  for (const stream of [process.stdout, process.stderr])
    stream.on("error", (error: NodeJS.ErrnoException) => {
      if (error.code === "EIO") return; // its terminal is closed: the signal of that ends it in order
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
