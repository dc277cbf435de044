// `npm start`: prepares the clone, then becomes the server. `--dev` restarts it whenever a source changes.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { build, installPackages, main, root, SetUpFailure, sourcesNow } from "./set-up.mjs";

const usage = `Usage: npm start [-- options]

Starts Millrace from this folder. The first start installs its packages and builds it;
later ones do so again only when something changed.

  --dev    build and start again whenever a source file changes (npm run dev)
  --help   print this

Settings are environment variables that begin with MILLRACE_; docs/reference/settings.md lists them.

Exit codes: 0 stopped when asked to · 1 could not be set up or started, or failed
            2 unknown option · 130, 143 stopped by SIGINT or SIGTERM while being set up`;

const serverFile = join(root, "packages", "server", "dist", "main.js");
const lookEveryMs = 300;

const options = process.argv.slice(2);
const unknown = options.find((option) => !["--dev", "--help", "-h"].includes(option));

if (unknown !== undefined) {
  console.error(`Unknown option ${unknown}; \`npm start -- --help\` lists the options.`);
  process.exitCode = 2;
} else if (options.includes("--help") || options.includes("-h")) {
  console.log(usage);
} else {
  await main(options.includes("--dev") ? develop : start);
}

async function start(disarm) {
  await setUp();
  // From here on the server handles signals.
  disarm();
  await import(pathToFileURL(serverFile).href);
}

async function setUp() {
  await installPackages();
  await build();
  if (!existsSync(serverFile)) throw new SetUpFailure(`The build made no ${serverFile}.`);
}

async function develop(disarm) {
  await setUp();
  disarm();
  let server = startServer();
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => endWith(server, signal));
  let seen = sourcesNow();
  for (;;) {
    const now = await nextSources(seen);
    seen = now;
    console.error("A source changed.");
    if (!(await rebuilt())) continue;
    await stopServer(server, "SIGTERM");
    server = startServer();
  }
}

/**
 * Waits until the sources differ from `seen` and are no longer being written. It polls because a recursive watch loses
 * a file on Linux once an editor has replaced it by renaming.
 */
async function nextSources(seen) {
  let before = seen;
  for (;;) {
    await sleep(lookEveryMs);
    const now = sourcesNow();
    if (now === before && now !== seen) return now;
    before = now;
  }
}

async function rebuilt() {
  try {
    await setUp();
    return true;
  } catch (error) {
    if (!(error instanceof SetUpFailure)) throw error;
    error.print();
    console.error("The server continues unchanged.");
    return false;
  }
}

function startServer() {
  const server = spawn(process.execPath, [serverFile], { cwd: root, stdio: "inherit" });
  server.once("exit", (code, signal) => {
    if (!server.isStopping)
      console.error(`The server ended (${signal ?? `exit code ${code}`}); waiting for a change …`);
  });
  return server;
}

async function stopServer(server, signal) {
  server.isStopping = true;
  if (server.exitCode !== null || server.signalCode !== null) return server.exitCode ?? 1;
  const ended = once(server, "exit");
  server.kill(signal);
  const [code] = await ended;
  return code ?? 1;
}

async function endWith(server, signal) {
  process.exit(await stopServer(server, signal));
}
