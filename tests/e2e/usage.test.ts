import { afterAll, beforeAll, expect, it } from "vitest";
import { call, makeEndpoint, startServer, type TestServer, until } from "../harness.js";
import { makeHandler } from "./handlers.js";
import { allWorkersOf, save } from "./life.js";
import type { Body } from "./wire.js";

let server: TestServer;
const undos: (() => void)[] = [];
const ending = { onTestFinished: (undo: () => void) => void undos.unshift(undo) };
beforeAll(async () => {
  server = await startServer({ MILLRACE_STOP_GRACE: "2" }, { usageTickMs: 200, netMs: 100 });
});
afterAll(async () => {
  await server?.end();
  for (const undo of undos) undo();
});

const get = async (path: string): Promise<Body> => {
  const { status, body } = await call(server, "GET", path);
  expect(status, JSON.stringify(body)).toBe(200);
  return body;
};
/** When a phase of a worker's life was, in ms. */
const at = (worker: Body, phase: string): number =>
  Date.parse(worker.timeline.find((each: Body) => each.phase === phase)?.at);

it("A bill has each worker's time to the millisecond, however often the server was killed", async () => {
  const prices = { gpus: {}, vcpu: 3_600, memoryGb: 0, volumeGb: 0 };
  expect((await call(server, "PUT", "/v1/prices", prices)).status).toBe(200);
  const settings = { computeType: "CPU", vcpuCount: 1, workersMin: 1, workersMax: 1 };
  const endpoint = await makeEndpoint(server, makeHandler(ending, "export default () => 1;\n"), settings);
  const started = () =>
    until(async () => (await allWorkersOf(server, endpoint)).find((each) => at(each, "first take")));
  await started();
  for (let n = 0; n < 3; n++) {
    // let it be banked in part
    const before = (await get(`/v1/billing/endpoints?endpointId=${endpoint}`))[0]?.timeBilledMs ?? 0;
    await until(
      async () => ((await get(`/v1/billing/endpoints?endpointId=${endpoint}`))[0]?.timeBilledMs ?? 0) > before,
    );
    await server.kill();
    await server.restart();
    await started();
  }
  await save(server, endpoint, { workersMin: 0, workersMax: 0 });
  const ended = await until(async () => {
    const workers = await allWorkersOf(server, endpoint);
    return workers.length > 0 && workers.every((each) => at(each, "ended")) && workers;
  }, 60_000);
  const expected = ended.reduce((sum, each) => sum + at(each, "ended") - at(each, "process started"), 0);
  const bill = await until(async () => {
    const [record, ...more] = await get(`/v1/billing/endpoints?endpointId=${endpoint}&bucketSize=year`);
    return more.length === 0 && record?.timeBilledMs >= expected && record;
  });
  expect(bill.timeBilledMs).toBe(expected);
  expect(bill.amount).toBeCloseTo(expected / 1_000, 3);
});
