import { afterAll, beforeAll, expect, it } from "vitest";
import { makeHandler } from "../e2e/handlers.js";
import { startServer, type TestServer } from "../harness.js";
import { newerPython } from "./environments/newer-python.js";
import { runScript } from "./environments/python-scripts.js";
import { expectOutcomes } from "./outcomes.js";
import { flashCalls } from "./python-calls.js";

let server: TestServer;
const undos: (() => void | Promise<void>)[] = [];
beforeAll(async () => {
  server = await startServer();
});
afterAll(async () => {
  await server?.end();
  for (const undo of undos) await undo();
});

it("Every management call of flash works, or says that its subject exists only at the hosted service", async () => {
  const ending = { onTestFinished: (undo: () => void | Promise<void>) => void undos.push(undo) };
  const folder = makeHandler(
    ending,
    `export default async (input, job) => { console.log("line of " + job.id); return { n: input.n + 1 }; };`,
  );
  const found = await runScript(newerPython(), "flash", {
    env: {
      RUNPOD_API_KEY: server.key,
      RUNPOD_API_BASE_URL: `${server.url}/sdk`,
      RUNPOD_ENDPOINT_BASE_URL: `${server.url}/sdk/v2`,
      RUNPOD_REST_API_URL: `${server.url}/sdk/v1`,
      RUNPOD_HAPI_URL: server.url,
      RUNPOD_URL_MIXED_OK: "1",
      RUNPOD_FLASH_SILENCE_DEPRECATION: "1",
    },
    words: [folder],
  });
  expectOutcomes(flashCalls, found);
  const job = found["ServerlessEndpoint.runsync"].gave;
  expect(job).toMatchObject({ status: "COMPLETED", output: { n: 2 } });
  expect(found.fetch_logs.gave).toEqual({
    worker: job.workerId,
    lines: expect.arrayContaining([expect.stringMatching(`^\\d{4}-.*Z line of ${job.id}$`)]),
  });
  expect(found.get_template.gave).toMatchObject({ name: "by hand", env: [{ key: "A", value: "1" }] });
  expect(found.update_template.gave).toMatchObject({ env: [{ key: "B", value: "2" }] });
  expect(found.endpoint_exists.gave).toBe(true);
  expect(found.delete_endpoint.gave).toEqual({ success: true });
  expect(found["exists after"].gave).toBe(false);
  expect(found.list_network_volumes.gave).toHaveLength(2);
  expect(found.list_flash_apps.gave).toEqual([]);
});
