import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { assemble, type Millrace } from "../assemble.js";
import { readConfig } from "../config.js";
import { openSqlite } from "../stores/sqlite/open.js";
import { MovableClock } from "../testing/movable-clock-fixture.js";
import { RecordingSender } from "../testing/recording-sender-fixture.js";
import { StrictProvider } from "../testing/strict-provider-fixture.js";

let directory: string;
let service: Millrace;
let clock: MovableClock;
let provider: StrictProvider;
const onFatal = (error: Error) => {
  throw error;
};

/** Runs enough turns of the event loop for requests over a socket as well. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
}
async function post(path: string, body: object): Promise<{ id: string }> {
  const headers = { authorization: `Bearer ${service.key}` };
  const reply = await fetch(service.url + path, { method: "POST", headers, body: JSON.stringify(body) });
  expect(reply.status).toBe(200);
  return reply.json() as Promise<{ id: string }>;
}

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), "millrace-gap-"));
  writeFileSync(join(directory, "handler.mjs"), ""); // a template without a handler in its folder is refused
  clock = new MovableClock();
  provider = new StrictProvider();
  const env = { MILLRACE_DATA_DIR: directory, MILLRACE_PORT: "0", MILLRACE_LOG_LEVEL: "silent" };
  const stores = openSqlite({ path: ":memory:", onFatal });
  service = await assemble(readConfig(env), { clock, provider, sender: new RecordingSender(), stores });
  const template = await post("/v1/templates", { name: "here", imageName: directory });
  await post("/v1/endpoints", { templateId: template.id, workersMin: 1 });
  await clock.advance(100, settle);
  const { env: given } = provider.launches[0]!;
  const ping = given.RUNPOD_WEBHOOK_PING!.replace("$RUNPOD_POD_ID", given.RUNPOD_POD_ID!);
  const reply = await fetch(ping, { headers: { authorization: given.RUNPOD_AI_API_KEY! } });
  expect(reply.status).toBe(200);
  await clock.advance(100, settle);
});

afterEach(async () => {
  for (const { workerId } of provider.launches) if (provider.isRunning(workerId)) provider.end(workerId, { code: 0 });
  const stopped = service.stop("a test");
  let over = false;
  void stopped.then(() => {
    over = true;
  });
  while (!over) await clock.advance(1_000, settle);
  await stopped;
  rmSync(directory, { recursive: true, force: true });
  expect(provider.violations).toEqual([]);
});

it("A worker that was silent for 30 s while the server ran is killed", async () => {
  await clock.advance(31_000, settle);
  expect(provider.calls.filter((call) => call.startsWith("kill"))).toHaveLength(1);
});

it("A worker does not count as silent while our own process did not run", async () => {
  clock.suspend(600_000);
  await clock.advance(29_000, settle);
  expect(provider.calls.filter((call) => call.startsWith("kill"))).toEqual([]);
  await clock.advance(3_000, settle);
  expect(provider.calls.filter((call) => call.startsWith("kill"))).toHaveLength(1);
});
