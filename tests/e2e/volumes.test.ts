import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { call, makeEndpoint, startServer, type TestServer, until } from "../harness.js";

let server: TestServer;
let folder: string;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "millrace-writer-"));
  const write = `import { writeFileSync } from "node:fs";
export default ({ mib }) => writeFileSync(process.env.RUNPOD_VOLUME_PATH + "/model", Buffer.alloc(mib * 2 ** 20, 1));
`;
  writeFileSync(join(folder, "handler.mjs"), write);
  server = await startServer({}, { volumeGapMs: 500 });
});
afterAll(async () => {
  await server?.end();
  rmSync(folder, { recursive: true, force: true });
});

describe("a network volume", () => {
  it("shows how much its workers have written", async () => {
    const asked = { name: "models", size: 1, dataCenterId: "here" };
    const { id } = (await call(server, "POST", "/v1/networkvolumes", asked)).body;
    const settings = { networkVolumeId: id, workersMax: 1, idleTimeout: 1, computeType: "CPU" };
    const endpoint = await makeEndpoint(server, folder, settings);
    const run = await call(server, "POST", `/v2/${endpoint}/runsync`, { input: { mib: 3 } });
    expect(run.body.status, JSON.stringify(run.body)).toBe("COMPLETED");
    const shown = await until(async () => {
      const { body } = await call(server, "GET", `/v1/networkvolumes/${id}`);
      return body.usedBytes >= 3 * 2 ** 20 && body;
    }, 60_000);
    expect(shown).toMatchObject({ ...asked, sizePassed: false });
    expect(Date.parse(shown.usedAt)).toBeGreaterThan(0);
    const removed = await call(server, "DELETE", `/v1/networkvolumes/${id}`);
    expect(removed).toMatchObject({ status: 400, body: { code: "IN_USE" } });
  });
});
