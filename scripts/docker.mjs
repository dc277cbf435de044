// A Docker Engine for tests, which they start, break and stop, beside any engine of the machine.
import { spawn, spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

const readyWithinMs = 60_000;
/** Adds the folders of tools that only root has on the PATH. */
const env = { ...process.env, PATH: `${process.env.PATH}:/usr/sbin:/sbin` };
const numbers = 250;
let engines = 0;

/** Starts an engine with its own folder, socket and bridge. Needs root. */
export async function startDocker() {
  const home = mkdtempSync(join(tmpdir(), "millrace-docker-"));
  const socketPath = join(home, "docker.sock");
  const pidFile = join(home, "docker.pid");
  const bridge = makeBridge();
  let child;
  let exited;
  let log = "";

  const start = async () => {
    rmSync(pidFile, { force: true }); // a killed engine leaves it behind
    const folders = ["--data-root", join(home, "data"), "--exec-root", join(home, "exec"), "--pidfile", pidFile];
    // leaves the machine's own network alone
    const network = ["-b", bridge.name, "--iptables=false", "--ip-forward=false", "--ip-masq=false"];
    child = spawn("dockerd", ["-H", `unix://${socketPath}`, ...folders, ...network, "--live-restore"], {
      env,
      stdio: ["ignore", "pipe", "pipe"],
    });
    const own = child;
    exited = new Promise((done) => own.once("exit", done));
    own.once("error", (error) => (log += `${error.message}\n`));
    for (const out of [own.stdout, own.stderr]) out.on("data", (text) => (log = `${log}${text}`.slice(-20_000)));
    await untilReady(own, socketPath, () => log);
  };
  const stop = async (signal = "SIGTERM") => {
    if (child.exitCode === null && child.signalCode === null) child.kill(signal);
    await exited;
    if (signal !== "SIGTERM") await endContainerd(join(home, "exec/containerd"));
  };
  /** Runs the engine's own command line and returns its output. */
  const docker = (...args) => {
    const { status, stdout, stderr } = spawnSync("/usr/bin/docker", ["-H", `unix://${socketPath}`, ...args], {
      encoding: "utf8",
      env: { ...env, DOCKER_CONFIG: home },
      maxBuffer: 2 ** 26,
    });
    if (status !== 0) throw new Error(`docker ${args.join(" ")}: ${stderr}`);
    return stdout.trim();
  };
  const kill = () => child?.kill("SIGKILL");
  const end = async () => {
    process.off("exit", kill);
    if (child.exitCode !== null || child.signalCode !== null) await start();
    const left = docker("ps", "-aq").split("\n").filter(Boolean);
    if (left.length > 0) docker("rm", "-f", ...left);
    await stop();
    bridge.remove();
    unmountUnder(home);
    rmSync(home, { recursive: true, force: true });
  };
  process.once("exit", kill);
  await start();
  return {
    host: `unix://${socketPath}`,
    socketPath,
    gateway: bridge.gateway,
    subnet: bridge.subnet,
    docker,
    log: () => log,
    start,
    stop,
    end,
    /** Makes an image from programs of this machine, each at its path here, and from further files. */
    makeImage(name, { programs, libraries = [], files = {}, changes = [] }) {
      const folder = join(home, "image");
      makeRoot(folder, programs, libraries, files);
      const tar = join(home, "image.tar");
      check(spawnSync("tar", ["-C", folder, "-cf", tar, "."], { encoding: "utf8" }));
      docker("import", ...changes.flatMap((change) => ["-c", change]), tar, name);
      for (const path of [folder, tar]) rmSync(path, { recursive: true, force: true });
      return name;
    },
    saveImage: (name, file) => void docker("save", "-o", file, name),
  };
}

/**
 * A bridge with an address from a range reserved for such tests, and a range for one further network. Takes the first
 * free number: another engine may have its own, and a test that was killed leaves its networks behind.
 */
export function makeBridge() {
  for (let attempt = 0; attempt < numbers; attempt++) {
    const n = (process.pid + (engines + attempt) * 7) % numbers;
    const name = `mrtest${n}`;
    const gateway = `198.18.${n}.1`;
    const subnet = `198.19.${n}.0/24`;
    if ([`${gateway}/`, `198.19.${n}.`].some((address) => ip("-4", "addr").includes(address))) continue;
    // A fixed address, as Docker's own bridges have. Otherwise a bridge uses the lowest address of its containers and
    // changes it when that container ends; then no container is reachable for half a minute.
    const address = ["address", `02:4d:52:00:00:${n.toString(16).padStart(2, "0")}`];
    const made = spawnSync("ip", ["link", "add", name, ...address, "type", "bridge"], { env, encoding: "utf8" });
    if (made.stderr?.includes("File exists")) continue;
    check(made);
    engines++;
    ip("addr", "add", `${gateway}/24`, "dev", name);
    ip("link", "set", name, "up");
    const network = { network: `198.18.${n}.0/24`, first: `198.18.${n}.10` };
    return { name, gateway, subnet, ...network, remove: () => ip("link", "del", name) };
  }
  throw new Error("All networks for engines of tests are taken: `ip link` shows them, `ip link del` removes one.");
}

/** Runs `ip` and returns its output. */
function ip(...args) {
  const run = spawnSync("ip", args, { env, encoding: "utf8" });
  check(run);
  return run.stdout;
}

function check({ status, stderr, error }) {
  if (status !== 0) throw new Error(stderr || String(error));
}

/** Copies programs with the libraries they load, and the files that names and users need. */
export function makeRoot(folder, programs, libraries, files) {
  for (const path of ["tmp", "proc", "sys", "dev", "root", "etc"]) mkdirSync(join(folder, path), { recursive: true });
  const copy = (path) => {
    const to = join(folder, path);
    if (existsSync(to)) return;
    mkdirSync(dirname(to), { recursive: true });
    cpSync(realpathSync(path), to);
  };
  for (const program of programs) copy(program);
  const { stdout } = spawnSync("ldd", [...programs, ...libraries], { encoding: "utf8", maxBuffer: 2 ** 26 });
  // Libraries beside a package's own library are there already.
  for (const [, library] of (stdout ?? "").matchAll(/\s(\/[^ ():]+) \(0x/g)) copy(library);
  writeFileSync(join(folder, "etc/passwd"), "root:x:0:0:root:/root:/bin/sh\n");
  writeFileSync(join(folder, "etc/group"), "root:x:0:\n");
  for (const [path, from] of Object.entries(files))
    cpSync(from, join(folder, path), { recursive: true, dereference: true });
}

/**
 * A crash ends the engine's own containerd too, but not at once: a lingering one would keep the next from its socket.
 */
async function endContainerd(folder) {
  const pidFile = join(folder, "containerd.pid");
  const pid = existsSync(pidFile) ? Number(readFileSync(pidFile, "utf8")) : 0;
  if (pid > 0 && readText(`/proc/${pid}/cmdline`)?.includes("containerd")) process.kill(pid, "SIGKILL");
  while (pid > 0 && readText(`/proc/${pid}/cmdline`)?.includes("containerd")) await sleep(20);
  for (const name of ["containerd.pid", "containerd.sock", "containerd.sock.ttrpc", "containerd-debug.sock"]) {
    rmSync(join(folder, name), { force: true });
  }
}

function readText(path) {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}

function unmountUnder(folder) {
  const mounts = readFileSync("/proc/self/mounts", "utf8")
    .split("\n")
    .map((line) => line.split(" ")[1] ?? "");
  for (const path of mounts
    .filter((each) => each.startsWith(`${folder}/`))
    .sort()
    .reverse())
    spawnSync("umount", [path]);
}

async function untilReady(child, socketPath, log) {
  const deadline = Date.now() + readyWithinMs;
  for (;;) {
    if (child.exitCode !== null) throw new Error(`dockerd ended with ${child.exitCode}:\n${log()}`);
    if (await answers(socketPath)) return;
    if (Date.now() > deadline) throw new Error(`dockerd was not ready after ${readyWithinMs / 1_000} s:\n${log()}`);
    await sleep(20);
  }
}

function answers(socketPath) {
  return new Promise((resolve) => {
    const call = request({ socketPath, path: "/_ping", timeout: 1_000 }, (reply) => {
      reply.resume();
      resolve(reply.statusCode === 200);
    });
    call.on("timeout", () => call.destroy());
    call.on("error", () => resolve(false));
    call.end();
  });
}
