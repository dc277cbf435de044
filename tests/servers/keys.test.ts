import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { makeHandler } from "../e2e/handlers.js";
import { call, makeEndpoint, until } from "../harness.js";
import { type Cluster, startCluster } from "./cluster.js";

let cluster: Cluster;
beforeAll(async () => {
  cluster = await startCluster(2);
  await cluster.settled();
});
afterAll(() => cluster?.end());

describe("A key made by one server", () => {
  it("works at once at another server, and requests held for it there end when it is revoked", async (test) => {
    const [one, other] = cluster.members;
    const endpoint = await makeEndpoint(one!, makeHandler(test), { workersMax: 0 });
    const { body: made } = await call(one!, "POST", "/v1/apikeys", { name: "k" });
    const theirs = { url: other!.url, key: made.key as string };
    const health = async () => (await call(theirs, "GET", `/v2/${endpoint}/health`)).status;
    expect(await health()).toBe(200);
    const held = call(theirs, "POST", `/v2/${endpoint}/runsync?wait=300000`, { input: {} });
    await until(async () => (await call(one!, "GET", `/v2/${endpoint}/health`)).body.jobs.inQueue === 1);
    expect((await call(one!, "DELETE", `/v1/apikeys/${made.id}`)).status).toBe(204);
    expect(await held).toMatchObject({ status: 401, body: { code: "UNAUTHORIZED" } }); // long before its wait would end
    expect(await health()).toBe(401);
  });
});

describe("The bootstrap key", () => {
  it("is rotated while the service runs, on all servers, and a new server with the old key does not restore it", async () => {
    const [one, other] = cluster.members;
    const { body: keys } = await call(one!, "GET", "/v1/apikeys");
    const { id } = keys.find((each: { isBootstrap?: boolean }) => each.isBootstrap);
    const { body: rotated } = await call(one!, "POST", `/v1/apikeys/${id}/rotate`, { overlapSeconds: 0 });
    expect(rotated.key).toMatch(/^mr_/);
    const statuses = async (key: string) =>
      Promise.all(
        [one!, other!].map(async (each) => (await call({ url: each.url, key }, "GET", "/v1/endpoints")).status),
      );
    await until(async () => (await statuses(rotated.key)).every((status) => status === 200));
    await until(async () => (await statuses(one!.key)).every((status) => status === 401));
    const late = await cluster.join(); // its MILLRACE_API_KEY is the old key
    expect((await call({ url: late.url, key: one!.key }, "GET", "/v1/endpoints")).status).toBe(401);
    expect((await call({ url: late.url, key: rotated.key }, "GET", "/v1/endpoints")).status).toBe(200);
    expect(readFileSync(join(one!.dataDir, "api-key"), "utf8").trim()).toBe(rotated.key);
  });
});
