import { enableCompileCache } from "node:module";
import { join } from "node:path";
import { readAbout } from "@millrace/server/about";
import { exits } from "./exit.js";
import { runProgram } from "./program.js";

// not in a folder for temporary files, where others could put what we would run
enableCompileCache(join(import.meta.dirname, ".compile-cache"));
const { version, commit } = readAbout(process.env.MILLRACE_COMMIT);
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
