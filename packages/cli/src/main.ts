#!/usr/bin/env node
import { enableCompileCache } from "node:module";
import { readAbout } from "@millrace/server/about";
import { exits } from "./exit.js";
import { runProgram } from "./program.js";

enableCompileCache();
const { version, commit } = readAbout(process.env.MILLRACE_COMMIT);
const interruption = new AbortController();
let endsItself = false;
for (const signal of ["SIGINT", "SIGTERM"] as const)
  process.on(signal, () => {
    interruption.abort();
    if (!endsItself) process.exit(exits.interrupted);
  });
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
  version: commit === undefined ? version : `${version} (${commit})`,
});
