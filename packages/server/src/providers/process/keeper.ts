// The keeper: one small process per host that owns the local workers' pipes and outlives the server.
// It is started as `node keeper.js <socket> <logs directory> <milliseconds without a server>`.
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, rmSync } from "node:fs";
import { createServer, type Socket } from "node:net";
import { dirname } from "node:path";
import { createInterface } from "node:readline";
import { realTime } from "../../clock.js";
import { limits } from "../../limits/index.js";
import { logPath } from "../log-files/log-file.js";
import { Away } from "./away.js";
import { statOf, workerIdName } from "./process-table.js";
import { markName, Sweep } from "./sweep.js";
import { WorkerLog } from "./worker-log.js";

interface Kept {
  readonly child: ChildProcess;
  readonly pid: number;
  readonly startTime: string;
  readonly log: WorkerLog;
  exit?: { code?: number; signal?: string };
  isSettled?: boolean;
  /** Resolves when both pipes have ended. */
  closed: Promise<void>;
}
interface Call {
  readonly n: number;
  readonly verb: string;
  readonly id: string;
  readonly argv?: string[];
  readonly cwd?: string;
  readonly env?: Record<string, string>;
  readonly awayMs?: number;
  readonly secret?: string;
  /** Texts to mask in the worker's log from its start. */
  readonly hidden?: readonly string[];
}

const [socketPath = "", logsDir = "", away = "0"] = process.argv.slice(2);
const kept = new Map<string, Kept>();
/** Workers that were killed before they were known: a late start, from a server that is gone, must not begin. */
const refused = new Set<string>();
const servers = new Set<Socket>();
const mark = process.env[markName] ?? `${process.pid}`;
const sweep = new Sweep(mark);
let awayMs = Number(away);
// a steady clock: the system's may be set, and runs while the machine sleeps
const without = new Away(realTime.monotonicMs());
let leaving = false;

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch {
    // it has ended
  }
}

/** Signals the leader alone. SIGCONT, because a paused worker would not react, and others ignore it. */
function askToStop({ pid }: Kept): void {
  signal(pid, "SIGTERM");
  signal(-pid, "SIGCONT");
}

const starting = new Map<string, ReturnType<typeof launch>>();

/** Starts a worker once, however often it is asked to. */
function start(call: Call): ReturnType<typeof launch> {
  const known = kept.get(call.id);
  if (known) return Promise.resolve({ pid: known.pid, startTime: known.startTime });
  if (refused.has(call.id)) return Promise.reject(new Error("it was ended before it was started"));
  const started = starting.get(call.id) ?? launch(call).finally(() => starting.delete(call.id));
  starting.set(call.id, started);
  return started;
}

function launch(call: Call): Promise<{ pid: number; startTime: string }> {
  const { id, argv = [], cwd } = call;
  const env = { ...call.env, [markName]: mark, [workerIdName]: id };
  return new Promise((resolve, reject) => {
    const child = spawn(argv[0] ?? "", argv.slice(1), { cwd, env, detached: true, stdio: ["ignore", "pipe", "pipe"] });
    child.once("error", (error: NodeJS.ErrnoException) =>
      reject(new Error(`'${argv[0]}' could not be started (${error.code})`)),
    );
    child.once("spawn", () => {
      const pid = child.pid as number;
      const secret = call.env?.RUNPOD_AI_API_KEY;
      const log = new WorkerLog(logPath(logsDir, id), [secret ?? "", ...(call.hidden ?? [])]);
      for (const pipe of ["stdout", "stderr"] as const) {
        child[pipe]?.setEncoding("utf8").on("data", (text: string) => log.write(pipe, text));
      }
      const closed = new Promise<void>((done) => child.once("close", () => done()));
      const entry: Kept = { child, pid, startTime: statOf(pid)?.startTime ?? "", log, closed };
      kept.set(id, entry);
      // the leader's exit counts as the end: `close` also waits for children that hold the pipes
      child.once("exit", (code, name) => ended(id, entry, code, name));
      resolve({ pid, startTime: entry.startTime });
    });
  });
}

function ended(id: string, entry: Kept, code: number | null, name: NodeJS.Signals | null): void {
  signal(-entry.pid, "SIGKILL");
  entry.exit = { ...(code === null ? {} : { code }), ...(name === null ? {} : { signal: name }) };
  void settled(id, entry).then(() => {
    entry.log.close();
    tell({ event: "end", id });
    if (servers.size === 0 && unsettled().length === 0) end();
  });
}

/** Ends all of a worker's processes, wherever they have gone, and waits for its last output. */
async function settled(id: string, entry: Kept): Promise<void> {
  await sweep.worker(id);
  await drained(entry);
  entry.isSettled = true;
}

/** Waits for its pipes to end, but only a moment: a process that cannot be found may hold them open. */
const drained = (entry: Kept) => Promise.race([entry.closed, realTime.sleep(limits.outputEndMs)]);

const running = () => [...kept.values()].filter((entry) => !entry.exit);
/** Workers that may have processes left. */
const unsettled = () => [...kept.values()].filter((entry) => !entry.isSettled);

function look(id: string) {
  const entry = kept.get(id);
  if (!entry) return { state: "unknown" };
  if (entry.isSettled) return { state: "ended", exit: entry.exit };
  return { state: "running", handle: { pid: entry.pid, startTime: entry.startTime } };
}

async function answer(call: Call): Promise<unknown> {
  const entry = kept.get(call.id);
  switch (call.verb) {
    case "start":
      return start(call);
    case "look":
      return look(call.id);
    case "pause":
      if (entry && !entry.exit) signal(-entry.pid, "SIGSTOP");
      return {};
    case "resume":
      if (entry && !entry.exit) signal(-entry.pid, "SIGCONT");
      return {};
    case "stop":
      if (entry && !entry.exit) askToStop(entry);
      return {};
    case "kill":
      if (!entry) refused.add(call.id);
      // its group first: the sweep does not find a command that clears its environment
      else if (!entry.exit) signal(-entry.pid, "SIGKILL");
      await sweep.worker(call.id);
      return {};
    case "tail":
      return { text: entry?.log.tail() ?? "" };
    case "hide":
      entry?.log.hide(call.secret ?? "");
      return {};
    case "forget":
      if (entry?.isSettled) kept.delete(call.id);
      return {};
    case "leave":
      awayMs = call.awayMs ?? awayMs;
      leaving = awayMs === 0;
      return {};
    default:
      throw new Error(`the keeper knows no '${call.verb}'`);
  }
}

function tell(message: object): void {
  for (const socket of servers) socket.write(`${JSON.stringify(message)}\n`);
}

const door = createServer((socket) => {
  servers.add(socket);
  leaving = false;
  socket.on("error", () => socket.destroy());
  socket.on("close", () => {
    servers.delete(socket);
    without.begin(realTime.monotonicMs());
    if (servers.size === 0 && unsettled().length === 0) end();
  });
  const lines = createInterface({ input: socket }).on("error", () => {});
  lines.on("line", (line) => {
    const call: Call = JSON.parse(line);
    answer(call).then(
      (result) => socket.write(`${JSON.stringify({ n: call.n, result })}\n`),
      (error: Error) => socket.write(`${JSON.stringify({ n: call.n, error: error.message })}\n`),
    );
  });
});

let ending = false;
function end(): void {
  if (ending) return;
  ending = true;
  for (const entry of kept.values()) entry.log.close();
  door.close();
  rmSync(socketPath, { force: true });
  process.exit(0);
}

/** Stops, then kills, all workers: no server came for too long, or the data directory is gone. */
function stopAll(): void {
  if (ending) return;
  for (const entry of running()) askToStop(entry);
  realTime.after(limits.stopGraceMsDefault, () => {
    for (const entry of running()) signal(-entry.pid, "SIGKILL");
    void sweep.all().then(end);
  });
  realTime.every(limits.keeperEndMs, () => unsettled().length === 0 && end());
}

let stopping = false;
realTime.every(limits.keeperLookMs, () => {
  for (const entry of kept.values()) if (!entry.exit) entry.log.tellCounts();
  const withoutMs = without.look(realTime.monotonicMs());
  const alone = servers.size === 0 && (leaving || withoutMs > awayMs);
  if ((alone || !existsSync(dirname(logsDir))) && !stopping) {
    stopping = true;
    stopAll();
  }
});

process.umask(0o022);
for (const name of ["SIGINT", "SIGHUP", "SIGPIPE"] as const) process.on(name, () => {});
process.on("SIGTERM", () => {
  stopping = true;
  stopAll();
});
await sweep.all();
rmSync(socketPath, { force: true });
door.listen(socketPath, () => process.send?.("listening"));
