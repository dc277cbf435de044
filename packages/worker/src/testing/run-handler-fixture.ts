import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect } from "vitest";
import { StubServer } from "./stub-server.js";

const bin = fileURLToPath(new URL("../../dist/run-handler.js", import.meta.url));
/** The stub server and the handler's directory of the present test, new for each. */
export let server: StubServer;
export let home: string;
let child: ChildProcess | undefined;

/** Writes files into a separate directory. */
export function write(files: Record<string, string>): string {
  for (const [name, content] of Object.entries(files)) {
    const file = path.join(home, name);
    mkdirSync(path.dirname(file), { recursive: true });
    writeFileSync(file, content);
  }
  return home;
}

/** Starts the compiled SDK on a handler, as an endpoint would. */
export function run(args: string[], env: Record<string, string> = server.environment()) {
  const started = spawn(process.execPath, [bin, ...args], {
    env: { PATH: process.env.PATH ?? "", MILLRACE_CACHE_DIR: path.join(home, ".cache"), ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  child = started;
  const ended = Promise.all([text(started.stdout), text(started.stderr), once(started, "exit")]).then(
    ([stdout, stderr, [code, signal]]) => ({ stdout, stderr, code: code ?? signal }),
  );
  return { process: started, ended };
}

/** Runs a handler once, without a server. */
export const tryOut = (args: string[]) => run([home, ...args], {}).ended;

/**
 * Gives each test of a file a stub server and a directory, ends its worker afterwards, and checks what the stub
 * recorded.
 */
export function eachWithHome(): void {
  beforeEach(async () => {
    server = await new StubServer().start();
    home = mkdtempSync(path.join(tmpdir(), "run-handler-"));
  });

  afterEach(async () => {
    child?.kill("SIGKILL");
    await server.stop();
    rmSync(home, { recursive: true });
    expect(server.breaches).toEqual([]);
  });
}
