import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { call, makeEndpoint } from "../harness.js";
import type { Target } from "./wire.js";

/** A test's clean-up hook; vitest's context provides it. */
export interface Ending {
  onTestFinished(undo: () => Promise<void> | void): void;
}

/** Makes an empty folder that is removed with the test. */
export function makeFolder(test: Ending): string {
  const folder = mkdtempSync(join(tmpdir(), "millrace-e2e-"));
  test.onTestFinished(() => {
    try {
      rmSync(folder, { recursive: true, force: true });
    } catch {
      // A worker that is still stopping writes into it: leave it to the system, which cleans its temporary files.
    }
  });
  return folder;
}

/** Writes a folder with this source as its `handler.mjs`. */
export function makeHandler(test: Ending, source: string = scripted): string {
  const folder = makeFolder(test);
  writeFileSync(join(folder, "handler.mjs"), source);
  return folder;
}

/** Deletes an endpoint and its workers when the test is over, which frees the machine for the next tests. */
export function endWith(test: Ending, server: Target, endpoint: string): void {
  test.onTestFinished(async () => {
    await call(server, "DELETE", `/sdk/v1/endpoints/${endpoint}`).catch(() => undefined);
  });
}

/**
 * A handler that follows its input, in this order: `journal` (a file that gets a line with `name` and the process id),
 * `progress`, `gate` (a file to wait for), `exit` (a code), `fail` (a message), `env` (a variable to return); otherwise
 * it returns `echo`. It stops waiting when it is told to stop.
 */
export const scripted = `
import { appendFileSync, existsSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
export default async (input, job) => {
  const line = (word) => [input.name, word, process.pid].join(" ") + "\\n";
  const note = (word) => input.journal && appendFileSync(input.journal, line(word));
  note("start");
  if (input.progress !== undefined) await job.progress(input.progress);
  while (input.gate && !existsSync(input.gate)) {
    if (job.signal.aborted) {
      note("stopped");
      throw new Error("stopped");
    }
    await sleep(20);
  }
  if (input.exit !== undefined) process.exit(input.exit);
  if (input.fail !== undefined) throw new Error(input.fail);
  note("end");
  return input.env ? (process.env[input.env] ?? "") : input.echo;
};
`;

/** Makes an endpoint that never has a worker: its jobs wait. */
export async function makeQueue(test: Ending, server: Target): Promise<string> {
  const endpoint = await makeEndpoint(server, makeHandler(test), { workersMax: 0 });
  endWith(test, server, endpoint);
  return endpoint;
}

/** Makes an endpoint with real workers that run a handler (by default the scripted one). */
export async function makeRunning(
  test: Ending,
  server: Target,
  settings: Record<string, unknown> = {},
  source: string = scripted,
  template: Record<string, unknown> = {},
): Promise<string> {
  const endpoint = await makeEndpoint(server, makeHandler(test, source), settings, template);
  endWith(test, server, endpoint);
  return endpoint;
}
