import { afterEach, beforeEach, expect } from "vitest";
import type { Handler, Job, ServeOptions } from "../handler/handler.js";
import { readSettings } from "../settings.js";
import { type Ending, Worker } from "../worker.js";
import { StubServer } from "./stub-server.js";

/** The stub server and the worker of the present test, new for each. */
export let server: StubServer;
export let worker: Worker;
export let running: Promise<Ending>;

const quiet = { debug() {}, info() {}, warn() {}, error() {} };

/** Gives each test of a file a stub server, ends its worker afterwards, and checks what the stub recorded. */
export function eachWithServer(): void {
  beforeEach(async () => {
    server = await new StubServer().start();
  });
  afterEach(async () => {
    worker.stopJobs();
    server.releaseTake();
    await running;
    await server.stop();
    expect(server.breaches).toEqual([]);
  });
}

/** Starts the worker of a test. */
export function begin(handler: Handler, options: ServeOptions = {}): void {
  worker = new Worker(handler, options, readSettings(server.environment()), () => quiet);
  running = worker.run();
}

/** True for calls that ask for jobs. */
export const isTake = (call: { name: string }) => call.name.startsWith("job-take");

/** A promise that is resolved from outside: handlers wait on it for as long as a test wants. */
export function gate(): { open: () => void; opened: Promise<void> } {
  let open = () => {};
  const opened = new Promise<void>((resolve) => (open = resolve));
  return { open: () => open(), opened };
}

/** Resolves when a job is stopped. */
export const stopped = (job: Job) =>
  new Promise<void>((resolve) => job.signal.addEventListener("abort", () => resolve()));
