import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { call, makeEndpoint } from "../harness.js";
import type { Target } from "./wire.js";

/** What a test can ask of its clean-up: vitest's context has it. */
export interface Ending {
  onTestFinished(undo: () => Promise<void> | void): void;
}

/** Makes an empty folder that goes with the test. */
export function makeFolder(test: Ending): string {
  const folder = mkdtempSync(join(tmpdir(), "millrace-e2e-"));
  test.onTestFinished(() => {
    try {
      rmSync(folder, { recursive: true, force: true });
    } catch {
      // a worker that is still being stopped writes into it: the system's temporary files are cleaned by the system
    }
  });
  return folder;
}

/** Writes a folder whose `handler.mjs` is the given source. */
export function makeHandler(test: Ending, source: string = scripted): string {
  const folder = makeFolder(test);
  writeFileSync(join(folder, "handler.mjs"), source);
  return folder;
}

/** Deletes an endpoint with its workers when the test is over, so that the next ones have the machine. */
export function endWith(test: Ending, server: Target, endpoint: string): void {
  test.onTestFinished(async () => {
    await call(server, "DELETE", `/sdk/v1/endpoints/${endpoint}`).catch(() => undefined);
  });
}

/**
 * A handler that does what its input says, in this order: `journal` (a file that gets a line with `name` and the
 * process id), `progress`, `gate` (a file to wait for), `exit` (a code), `fail` (a message), `env` (a variable to
 * give back); otherwise it gives `echo` back. It gives up waiting when it is told to stop.
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

/** Makes an endpoint with real workers that run a handler (the scripted one unless told). */
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
