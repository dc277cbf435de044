// Child processes of the bench: none outlives it.
import { fork, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

const endPatienceMs = 45_000;
const children = new Set();
process.on("exit", () => {
  for (const child of children) child.kill("SIGKILL");
});

const hasEnded = (child) => child.exitCode !== null || child.signalCode !== null;

function keep(child) {
  children.add(child);
  child.once("exit", () => children.delete(child));
  return child;
}

/** Starts a command; its stderr is shown, its other output is dropped. */
export const start = (command, args, options = {}) =>
  keep(spawn(command, args, { stdio: ["ignore", "ignore", "pipe"], ...options }));

/** Ends a child, by force if it does not react. */
export async function stop(child, signal = "SIGTERM") {
  if (hasEnded(child)) return;
  const ended = once(child, "exit");
  child.kill(signal);
  const force = setTimeout(() => child.kill("SIGKILL"), endPatienceMs);
  await ended;
  clearTimeout(force);
}

/**
 * Starts a process that answers requests: `file` calls `obey`. Resolves with `ask(verb, argument)`. It ends with its
 * scope, and when this process ends.
 */
export async function startAgent(scope, file, options = {}) {
  const child = keep(
    fork(join(import.meta.dirname, file), [], { stdio: ["ignore", "ignore", "inherit", "ipc"], ...options }),
  );
  const waiting = new Map();
  let asked = 0;
  const failAll = (why) => {
    for (const { reject } of waiting.values()) reject(new Error(`${file} ${why}`));
    waiting.clear();
  };
  child.once("exit", (code, signal) => failAll(`ended (${signal ?? code})`));
  child.on("message", ({ no, value, error }) => {
    const { resolve, reject } = waiting.get(no);
    waiting.delete(no);
    if (error === undefined) resolve(value);
    else reject(new Error(`${file}: ${error}`));
  });
  scope.defer(() => stop(child));
  await once(child, "spawn");
  return {
    pid: child.pid,
    ask: (verb, argument) =>
      new Promise((resolve, reject) => {
        const no = asked++;
        waiting.set(no, { resolve, reject });
        child.send({ no, verb, argument }, (error) => error && reject(error));
      }),
  };
}

/** Waits until `probe` returns a truthy value; `what` names it in the error. */
export async function reach(what, probe, { withinMs = 120_000, everyMs = 25 } = {}) {
  const deadline = Date.now() + withinMs;
  for (;;) {
    const found = await probe();
    if (found) return found;
    if (Date.now() > deadline) throw new Error(`Not within ${withinMs / 1_000} s: ${what}.`);
    await sleep(everyMs);
  }
}

/** A folder that is removed with its scope. */
export function makeFolder(scope) {
  const folder = mkdtempSync(join(tmpdir(), "millrace-bench-"));
  scope.defer(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

export async function freePort() {
  const probe = createServer().listen(0, "127.0.0.1");
  await once(probe, "listening");
  const { port } = probe.address();
  probe.close();
  await once(probe, "close");
  return port;
}
