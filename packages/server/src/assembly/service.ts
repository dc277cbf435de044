import { readFileSync } from "node:fs";
import { ConfigError, readConfig } from "../config.js";
import { openDoor } from "../edges/shared/connections/door.js";

/** Prints one sentence without a stack, and exits. */
function giveUp(message: string, code: 1 | 2): never {
  process.stderr.write(`${message}\n`);
  process.exit(code);
}

function configured() {
  try {
    return readConfig(process.env);
  } catch (error) {
    if (error instanceof ConfigError) giveUp(error.message, 2);
    throw error;
  }
}

// our files are private; the keeper gives workers the usual umask
process.umask(0o077);
/** Whether the end of our terminal ends us: not where nohup has us ignore it, which a listener would undo. */
function hearsHangups(): boolean {
  try {
    const ignored = /^SigIgn:\s*([0-9a-f]+)$/m.exec(readFileSync("/proc/self/status", "utf8"))?.[1];
    return ignored !== undefined && (Number.parseInt(ignored.slice(-1), 16) & 1) === 0;
  } catch {
    return false; // it cannot be known here
  }
}

const config = configured();
const door = await openDoor(config.host, config.port).catch((error: NodeJS.ErrnoException) => {
  const where = `${config.host}:${config.port}`;
  if (error.code === "EADDRINUSE")
    giveUp(`${where} is in use: stop what listens there, or set MILLRACE_PORT to another port.`, 1);
  return giveUp(`${where} cannot be listened on (${error.code}): check MILLRACE_HOST and MILLRACE_PORT.`, 1);
});

// the rest is loaded only now: from here on the port replies 503 instead of refusing connections
const [{ assemble, StartError }, { runDemo }, { banner, namedFacts }, { isForPeople }, { eventLog }] =
  await Promise.all([
    import("../assemble.js"),
    import("../demo.js"),
    import("../banner.js"),
    import("./terminal.js"),
    import("../telemetry/log.js"),
  ]);

const onFatal = (error: Error) =>
  giveUp(`The disk failed, nothing more is accepted: ${error.message}. Start the service again.`, 1);
const millrace = await assemble(config, { door, onFatal }).catch((error: unknown) => {
  if (error instanceof StartError) giveUp(error.message, 1);
  throw error;
});

function stop(signal: string): void {
  millrace.stop(signal).then(
    () => process.exit(0),
    (error: unknown) =>
      giveUp(`The service could not stop in order: ${error instanceof Error ? error.message : error}.`, 1),
  );
}

let signals = 0;
for (const output of [process.stdout, process.stderr])
  output.on("error", ({ code }: NodeJS.ErrnoException) => {
    // nobody reads us any more; the end of a terminal has a signal of its own
    if (code === "EPIPE" && signals++ === 0) stop("the end of its reader");
  });
for (const signal of ["SIGTERM", "SIGINT", ...(hearsHangups() ? (["SIGHUP"] as const) : [])] as const) {
  process.on(signal, () => {
    signals++;
    // npm forwards a signal that the process group has received already: the second one is often the first again
    if (signals === 1) stop(signal);
    if (signals === 3) process.exit(130);
  });
}

const demo =
  config.demo && millrace.isFirstStart && millrace.key !== undefined
    ? await runDemo(millrace.url, millrace.key).catch(() => undefined)
    : undefined;
const isTerminal = process.stdout.isTTY === true;
const started = { millrace, demo, isTerminal };
if (signals === 0 && config.banner) {
  if (isForPeople(config)) process.stdout.write(banner(config, started));
  // asked for by its own setting, whatever the level of the rest
  else eventLog("info")({ type: "server.ready", url: millrace.url, facts: namedFacts(config, started) });
}
