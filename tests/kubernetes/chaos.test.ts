import { afterAll, beforeAll, expect, it } from "vitest";
import type { TestCluster } from "../../scripts/kubernetes/cluster.mjs";
import { startPostgres, type TestPostgres } from "../../scripts/postgres.mjs";
import { statusOf, submit } from "../e2e/wire.js";
import { call, makeEndpoint, startServer, type TestServer, until } from "../harness.js";
import { clusterSettings, clusterStartMs, namespace, podsIn, pythonCluster } from "./scene.js";

const image = "millrace.test/python:1";
const handler = `
import asyncio
import runpod

async def handler(job):
    await asyncio.sleep(job["input"]["seconds"])
    return job["input"]["n"]

runpod.serverless.start({"handler": handler})
`;

let cluster: TestCluster;
let postgres: TestPostgres;
let servers: TestServer[] = [];
beforeAll(async () => {
  [cluster, postgres] = await Promise.all([pythonCluster(image, handler), startPostgres()]);
  const shared = {
    MILLRACE_DATABASE_URL: postgres.url("postgres"),
    MILLRACE_SEAL_KEY: "5e".repeat(32),
    MILLRACE_RATE_LIMITS: "off",
  };
  const settings: Record<string, string> = { ...(await clusterSettings(cluster)), ...shared };
  // workers talk to the second server; the first one began to tend the cluster
  const { MILLRACE_PORT: _port, ...ofFirst } = settings;
  servers = [await startServer(ofFirst), await startServer(settings)];
}, clusterStartMs);
afterAll(async () => {
  for (const server of servers) await server.end();
  await postgres?.end();
  await cluster?.end();
});

const workersMax = 3;
const jobs = 60;
const pause = (ms: number) => new Promise((done) => setTimeout(done, ms));

it("loses no job and leaves no pod, whatever goes away meanwhile", { timeout: 400_000 }, async () => {
  const [first, second] = servers as [TestServer, TestServer];
  const settings = { computeType: "CPU", workersMax, idleTimeout: 30, scalerType: "REQUEST_COUNT", scalerValue: 1 };
  const endpoint = await makeEndpoint(second, image, settings);
  const running = () =>
    podsIn(cluster).flatMap((line) => (line.endsWith(" Running") ? [line.split(" ")[0] as string] : []));
  const ids: string[] = [];
  for (let n = 0; n < jobs; n++) ids.push(await submit(second, endpoint, { n, seconds: 1 }));
  await until(() => running().length === workersMax, 60_000);

  const some = () => running()[0] ?? "";
  const trouble: Record<string, () => Promise<unknown> | unknown> = {
    "a pod is deleted at once": () =>
      cluster.kubectl("delete", "pod", some(), `--namespace=${namespace}`, "--grace-period=0", "--force"),
    "a pod is evicted": () => {
      const eviction = { apiVersion: "policy/v1", kind: "Eviction", metadata: { name: some(), namespace } };
      return cluster.create(`/api/v1/namespaces/${namespace}/pods/${some()}/eviction`, eviction);
    },
    "the API server is away for a while": async () => {
      await cluster.stop("api");
      await pause(4_000);
      cluster.start("api");
      await cluster.untilApiAnswers();
    },
    "the kubelet starts again": async () => {
      await cluster.node.stopKubelet();
      await pause(1_000);
      cluster.node.startKubelet();
    },
    "the server that tends the cluster is killed": async () => {
      await first.kill();
      await pause(8_000);
      await first.restart();
    },
    "the API server hangs": async () => {
      cluster.signal("api", "SIGSTOP");
      await pause(4_000);
      cluster.signal("api", "SIGCONT");
    },
  };
  for (const act of Object.values(trouble)) {
    await act();
    await pause(2_000);
    expect(podsIn(cluster).filter((line) => line.endsWith(" Running")).length).toBeLessThanOrEqual(workersMax);
  }

  const outputs = await Promise.all(
    ids.map((id) =>
      until(async () => {
        const job = await statusOf(second, endpoint, id);
        if (job.status === "FAILED") throw new Error(JSON.stringify(job));
        return job.status === "COMPLETED" && { output: job.output };
      }, 200_000),
    ),
  );
  expect(outputs.map(({ output }) => output)).toEqual(ids.map((_, n) => n));

  const read = async ({ url, key }: TestServer) => {
    const reply = await fetch(`${url}/v1/endpoints/${endpoint}/logs?tail=1000`, {
      headers: { authorization: `Bearer ${key}` },
    });
    return (await reply.text()).split("\n");
  };
  const shown = await Promise.all(servers.map(read));
  // a pod that still runs is read by every server, whoever tends it
  const alive = running().map((name) => name.replace("millrace-", ""));
  for (const id of alive) for (const lines of shown) expect(lines.some((line) => line.includes(` ${id} `))).toBe(true);

  await call(second, "DELETE", `/sdk/v1/endpoints/${endpoint}`);
  await expect.poll(() => podsIn(cluster), { timeout: 60_000 }).toEqual([]);
  const secrets = () => cluster.kubectl("get", "secrets", `--namespace=${namespace}`, "--output=name");
  await expect.poll(secrets, { timeout: 60_000 }).toBe("");
});
