// Prepares a clone: packages installed, TypeScript built. Runs before anything is installed, so what
// it imports needs only `node:`.
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { constants } from "node:os";
import { join } from "node:path";
import { bundle, bundleFiles } from "./bundle.mjs";
import { bin, cache, readText, root, SetUpFailure } from "./clone.mjs";
import { dropLocks, holdWith, locked } from "./lock.mjs";

export { bin, cache, locked, readText, root, SetUpFailure };

const parentLookMs = 500;
/** How long a child may take to end after a signal before it is killed. */
const endPatienceMs = 5_000;

/**
 * Runs a script's main function and ends the process with the code it returns; a SetUpFailure is printed and ends it
 * with 1.
 */
export async function main(outline) {
  const disarm = endOnSignals();
  try {
    const code = await outline(disarm);
    if (code !== undefined) process.exit(code);
  } catch (error) {
    if (!(error instanceof SetUpFailure)) throw error;
    error.print();
    await endChildren(); // another piece of the set-up may still be under way
    process.exit(1);
  }
}

// ---- Packages

/** Installs the packages of package-lock.json, those for building and testing too, unless they are there already. */
export async function installPackages() {
  if (packagesState() === "ready") return;
  await locked(async () => {
    const state = packagesState();
    if (state === "ready") return;
    if (state === "missing") rmSync(join(root, "node_modules"), { recursive: true, force: true });
    mkdirSync(join(root, "node_modules"), { recursive: true });
    writeFileSync(packagesStamp, "unfinished\n");
    const words = state === "missing" ? "Installing packages (first start, about half a minute)" : "Updating packages";
    // Not `npm ci`: it insists that the lock file names the optional packages of every platform, even those that the
    // registry in use does not carry. With --no-save the lock file still decides, and is never written. --include=dev:
    // the compiler is needed under NODE_ENV=production too.
    const args = ["install", "--no-save", "--include=dev", "--no-audit", "--no-fund", "--loglevel=error"];
    const npm = await withProgress(words, () => run("npm", args));
    if (npm.code !== 0) throw new SetUpFailure("npm could not install the packages:", npm.output);
    writeFileSync(packagesStamp, `${packagesWanted()}\n`);
  });
}

const packagesStamp = join(root, "node_modules", ".millrace-stamp");

/**
 * `stale` can be updated in place; `missing` also stands for an install that was interrupted or made for another
 * platform.
 */
function packagesState() {
  const stamp = readText(packagesStamp)?.trim();
  const [platform] = packagesWanted().split(" ");
  if (stamp === packagesWanted()) return "ready";
  const npmFinished = existsSync(join(root, "node_modules", ".package-lock.json"));
  return npmFinished && (stamp === undefined || stamp.startsWith(`${platform} `)) ? "stale" : "missing";
}

function packagesWanted() {
  const { platform, arch, versions } = process;
  return `${platform}-${arch}-${versions.modules} ${hashOf(readText(join(root, "package-lock.json")) ?? "")}`;
}

// ---- Building

/** Compiles every package to its `dist`, unless no source changed since the last time. */
export async function build() {
  if (isBuilt()) return linkCommand();
  await locked(async () => {
    if (isBuilt()) return;
    rmSync(buildStamp, { force: true });
    // Taken before the compiler reads, so that a file saved meanwhile is compiled next time.
    const sources = sourcesNow();
    const tsc = await withProgress("Building", () => run(join(bin, "tsc"), ["-b"]));
    if (tsc.code !== 0) throw new SetUpFailure("The sources do not compile:", tsc.output);
    // after the compiler, which would otherwise seem to have written later
    // for use, even if it is built for tests
    const env = { ...process.env, NODE_ENV: "production" };
    const [dashboard, guide] = await Promise.all([
      run(join(bin, "vite"), ["build", "packages/dashboard"], { env }),
      run(process.execPath, [join(root, "scripts/docs/guide.mjs")]),
      bundle(),
    ]);
    if (dashboard.code !== 0) throw new SetUpFailure("The dashboard cannot be built:", dashboard.output);
    if (guide.code !== 0) throw new SetUpFailure("The guide cannot be built:", guide.output);
    writeFileSync(buildStamp, `${sources}\n`);
  });
  linkCommand();
}

/** Makes `npx millrace` in this clone run the command line on the Node.js that Millrace uses. */
function linkCommand() {
  const link = join(bin, "millrace");
  if (readText(link) === commandScript) return;
  rmSync(link, { force: true }); // npm may have linked the program itself
  writeFileSync(link, commandScript, { mode: 0o755 });
}

const commandScript = `#!/bin/sh
root=$(cd "$(dirname "$0")/../.." && pwd) || exit
MILLRACE_CLONE=$root exec sh "$root/scripts/node.sh" "$root/packages/cli/dist/main.js" "$@"
`;

const buildStamp = join(cache, "build-stamp");
const webPages = ["app", "guide"].map((name) => join(root, "packages/dashboard/dist", name, "index.html"));

function isBuilt() {
  if (readText(buildStamp)?.trim() !== sourcesNow()) return false;
  const compiled = packageNames().map((name) => writtenAt(join(root, "packages", name, "dist", ".tsbuildinfo")));
  const bundledAt = Math.min(...bundleFiles.map(writtenAt));
  return compiled.every((at) => at > 0 && at < bundledAt) && webPages.every(existsSync);
}

/** A fingerprint of all inputs of a build: names, sizes and modification times. */
export function sourcesNow() {
  const packages = packageNames().map((name) => join("packages", name));
  const files = [
    ...readdirSync(root).filter((name) => /^(tsconfig.*|package(-lock)?)\.json$/.test(name)),
    ...packages.flatMap((path) => [join(path, "package.json"), join(path, "tsconfig.json")]),
    ...packages.flatMap((path) => filesUnder(join(path, "src"))).filter((path) => !/\.test\.tsx?$/.test(path)),
    ...["index.html", "vite.config.ts"].map((name) => join("packages/dashboard", name)),
    ...filesUnder("packages/dashboard/public"),
    ...["docs/guide", "docs/reference"].flatMap(filesUnder).filter((path) => !path.endsWith(".openapi.json")),
    "scripts/docs/guide.mjs",
  ];
  return hashOf(files.map(fileState).sort().join("\n"));
}

const writtenAt = (path) => statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;

function packageNames() {
  const folders = readdirSync(join(root, "packages"), { withFileTypes: true }).filter((entry) => entry.isDirectory());
  return folders.map(({ name }) => name).filter((name) => existsSync(join(root, "packages", name, "tsconfig.json")));
}

function filesUnder(folder) {
  if (!existsSync(join(root, folder))) return [];
  return readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    return entry.isDirectory() ? filesUnder(path) : [path];
  });
}

function fileState(path) {
  const stat = statSync(join(root, path), { throwIfNoEntry: false });
  return `${path} ${stat?.size} ${stat?.mtimeMs}`;
}

// ---- Children, and ending early

const children = new Set();
let isEnding = false;

/**
 * Runs a command to its end; its output is collected unless `stdio` says otherwise. The code is null if it cannot be
 * started.
 */
export async function run(command, args, { env = process.env, stdio = ["ignore", "pipe", "pipe"] } = {}) {
  // A new process group, so that its children can be ended with it.
  const child = spawn(command, args, { cwd: root, env, stdio, detached: true });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) stream?.setEncoding("utf8").on("data", (text) => (output += text));
  const closed = new Promise((done) => {
    child.once("error", (error) => done({ code: null, output: `${command}: ${error.message}` }));
    child.once("close", (code) => done({ code, output }));
  });
  if (child.pid === undefined) return closed;
  children.add(child);
  holdWith(child.pid); // also if this process is killed
  const result = await closed;
  children.delete(child);
  // The signal's handler ends this process; a failure reported meanwhile would only mislead.
  return isEnding ? new Promise(() => {}) : result;
}

/** Sends a signal to a child of `run` or `spawn` and to all its descendants in its group. */
export function signalGroup(child, signal) {
  try {
    process.kill(-child.pid, signal);
  } catch (error) {
    if (error.code !== "ESRCH") throw error;
  }
}

function endOnSignals() {
  const signals = ["SIGINT", "SIGTERM", "SIGHUP"];
  for (const signal of signals) process.on(signal, endEarly);
  process.on("exit", dropLocks);
  return () => {
    for (const signal of signals) process.off(signal, endEarly);
  };
}

/** Ends this process as a signal would once its parent has ended: a shell that waits for it forwards no signals. */
export function endWithParent() {
  const parent = process.ppid;
  setInterval(() => process.ppid === parent || endEarly("SIGTERM"), parentLookMs).unref();
}

async function endEarly(signal) {
  const code = 128 + constants.signals[signal];
  if (isEnding) {
    killChildren();
    process.exit(code);
  }
  await endChildren();
  if (isInProgress) process.stderr.write("\n");
  process.exit(code);
}

/** Ends all children, and resolves once they have ended. */
async function endChildren() {
  isEnding = true;
  const ended = [...children].map((child) => new Promise((done) => child.once("close", done)));
  for (const child of children) signalGroup(child, "SIGTERM");
  const impatience = setTimeout(killChildren, endPatienceMs);
  await Promise.all(ended);
  clearTimeout(impatience);
}

function killChildren() {
  for (const child of children) signalGroup(child, "SIGKILL");
}

// ---- Words

let isInProgress = false;

/** Shows one line with the time that `work` took; on a terminal the time is updated. */
export async function withProgress(words, work) {
  const began = Date.now();
  const secondsTaken = () => `${Math.round((Date.now() - began) / 1000)} s`;
  const again = process.stderr.isTTY ? `\r${words} …` : "";
  process.stderr.write(`${words} …`);
  const counting = again && setInterval(() => process.stderr.write(`${again} ${secondsTaken()}`), 1_000);
  isInProgress = true;
  try {
    return await work();
  } finally {
    clearInterval(counting);
    isInProgress = false;
    process.stderr.write(`${again} ${secondsTaken()}\n`);
  }
}

function hashOf(text) {
  return createHash("sha256").update(text).digest("hex");
}
