import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { makeNodeImage } from "../../scripts/images.mjs";
import { startCluster, type TestCluster } from "../../scripts/kubernetes/cluster.mjs";
import { workersOf } from "../e2e/life.js";
import { call, makeEndpoint, until } from "../harness.js";
import { type Member, type Cluster as Servers, startCluster as startServers } from "../servers/cluster.js";
import { clusterSettings, clusterStartMs, namespace, podsIn } from "./scene.js";

/** Two servers that tend one cluster in turn. */
const image = "millrace.test/node:1";
const source = `export default ({ say }) => {
  console.log("said " + say);
  return say;
};`;

let cluster: TestCluster;
let servers: Servers;
let tending: Member;
let other: Member;
beforeAll(async () => {
  cluster = await startCluster();
  const handler = join(cluster.home, "handler.mjs");
  writeFileSync(handler, source);
  makeNodeImage(cluster, image, { handler });
  cluster.kubectl("create", "namespace", namespace);
  servers = await startServers(0);
  const settings = await clusterSettings(cluster);
  const { MILLRACE_PORT: _, ...elsewhere } = settings;
  tending = await servers.join(settings); // workers talk to it
  const [host] = await servers.query<{ no: number }>("SELECT no FROM host WHERE id LIKE 'kubernetes/%'");
  await until(async () => (await servers.ownerOf(`tend-cluster-${host?.no}`)) === tending, 30_000);
  other = await servers.join(elsewhere);
}, clusterStartMs);
afterAll(async () => {
  await servers?.end();
  await cluster?.end();
});

/** A worker that has printed a line. */
async function printed(server: Member, say: string) {
  const endpoint = await makeEndpoint(server, image, { computeType: "CPU", workersMax: 1, idleTimeout: 600 });
  await says(server, endpoint, say);
  const [worker] = await workersOf(server, endpoint);
  return { endpoint, worker: worker?.id ?? "" };
}
async function says(server: Member, endpoint: string, say: string): Promise<void> {
  const { body } = await call(server, "POST", `/v2/${endpoint}/runsync?wait=60000`, { input: { say } });
  expect(body, JSON.stringify(body)).toMatchObject({ status: "COMPLETED" });
}
async function log({ url, key }: Member, path: string) {
  const headers = { authorization: `Bearer ${key}`, accept: "text/plain" };
  const reply = await fetch(`${url}/v1/${path}/logs`, { headers });
  return { status: reply.status, text: await reply.text() };
}
const shows = async (server: Member, path: string, say: string) =>
  until(async () => (await log(server, path)).text.includes(`said ${say}`), 30_000);
/** Ends an endpoint's workers; resolves when their rows and pods are gone. */
async function end(server: Member, endpoint: string): Promise<void> {
  await call(server, "PATCH", `/v1/endpoints/${endpoint}`, { workersMin: 0, workersMax: 0 });
  await expect.poll(() => podsIn(cluster), { timeout: 60_000 }).toEqual([]);
  const alive = "SELECT 1 FROM worker WHERE ended_at IS NULL";
  await until(async () => (await servers.query(alive)).length === 0, 30_000);
}

it("Why a worker has no node is told by each server", { timeout: 60_000 }, async () => {
  const wide = { computeType: "CPU", workersMax: 1, vcpuCount: 64 };
  const endpoint = await makeEndpoint(tending, image, wide);
  const { id } = (await call(tending, "POST", `/v2/${endpoint}/run`, { input: {} })).body;
  for (const server of [tending, other]) {
    const status = async () => (await call(server, "GET", `/v2/${endpoint}/status/${id}`)).body;
    const why = /A worker has no place yet: no node of the cluster has room for it: .*Insufficient cpu/;
    await until(async () => why.test((await status()).waitDetail), 30_000);
    expect(await status()).toMatchObject({ waitReason: "no_capacity" });
    const [worker] = await workersOf(server, endpoint);
    expect(worker).toMatchObject({ doing: expect.stringContaining("no node of the cluster has room") });
  }
  await call(tending, "POST", `/v2/${endpoint}/cancel/${id}`);
  await call(tending, "DELETE", `/sdk/v1/endpoints/${endpoint}`);
  await expect.poll(() => podsIn(cluster), { timeout: 30_000 }).toEqual([]);
});

describe("The log of a worker that has ended", () => {
  it("is shown by a server that has not tended it", { timeout: 120_000 }, async () => {
    const { endpoint, worker } = await printed(other, "hello");
    await end(other, endpoint);
    for (const path of [`workers/${worker}`, `endpoints/${endpoint}`]) {
      const there = await log(tending, path);
      expect(there).toMatchObject({ status: 200, text: expect.stringContaining("said hello") });
      await expect.poll(() => log(other, path)).toEqual(there);
    }
  });

  it("is shown whole by a server that has kept only its beginning", { timeout: 180_000 }, async () => {
    const { endpoint, worker } = await printed(tending, "one");
    for (const server of [tending, other]) await shows(server, `workers/${worker}`, "one");
    await other.kill();
    await says(tending, endpoint, "two");
    await end(tending, endpoint);
    await other.restart();
    const there = await log(tending, `workers/${worker}`);
    expect(there.text).toMatch(/said one\n.*said two\n/);
    await expect.poll(() => log(other, `workers/${worker}`)).toEqual(there);
  });

  it("is not held up by a server that hangs, and not shown as empty if that server may keep it", {
    timeout: 120_000,
  }, async () => {
    const { endpoint, worker } = await printed(tending, "hello");
    await end(tending, endpoint);
    process.kill(other.pid, "SIGSTOP");
    try {
      const asked = Date.now();
      expect((await log(tending, `workers/${worker}`)).text).toContain("said hello");
      expect(Date.now() - asked).toBeLessThan(15_000);
    } finally {
      process.kill(other.pid, "SIGCONT");
    }
    await shows(other, `workers/${worker}`, "hello");
    process.kill(tending.pid, "SIGSTOP");
    try {
      const { status, text } = await log(other, `workers/${worker}`);
      expect([status, text]).toEqual([503, expect.stringContaining("does not answer")]);
    } finally {
      process.kill(tending.pid, "SIGCONT");
    }
  });
});
