import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { TestCluster } from "../../scripts/kubernetes/cluster.mjs";
import { allWorkersOf, complete, workersOf } from "../e2e/life.js";
import { statusOf, submit } from "../e2e/wire.js";
import { call, makeEndpoint, type TestServer, until } from "../harness.js";
import { clusterStartMs, namespace, podsIn, pythonCluster, startClusterServer } from "./scene.js";

const image = "millrace.test/python:1";
const handler = `
import time
import runpod

def handler(job):
    asked = job["input"]
    if asked.get("gb"):
        return len(bytearray(b"x") * (asked["gb"] << 30))
    time.sleep(asked.get("seconds", 0))
    return "done"

runpod.serverless.start({"handler": handler})
`;

let cluster: TestCluster;
let server: TestServer;
beforeAll(async () => {
  cluster = await pythonCluster(image, handler);
  const priority = (name: string, value: number) => ({
    apiVersion: "scheduling.k8s.io/v1",
    kind: "PriorityClass",
    metadata: { name },
    value,
  });
  cluster.apply(priority("low", -10), priority("high", 1_000));
  const pod = join(cluster.home, "pod.yaml");
  writeFileSync(pod, "spec: { priorityClassName: low }\n");
  server = await startClusterServer(cluster, { MILLRACE_KUBERNETES_POD: pod, MILLRACE_KUBERNETES_MEMORY: "1" });
}, clusterStartMs);
afterAll(async () => {
  await server?.end();
  await cluster?.end();
});

const cpu = { computeType: "CPU", workersMax: 1, idleTimeout: 600 };
const remove = async (endpoint: string) => {
  await call(server, "DELETE", `/sdk/v1/endpoints/${endpoint}`);
  await expect.poll(() => podsIn(cluster), { timeout: 60_000 }).toEqual([]);
};
/** Waits until one of the endpoint's workers has ended like this. */
async function ended(endpoint: string, exit: object): Promise<void> {
  let last: unknown;
  await until(async () => {
    const all = await allWorkersOf(server, endpoint);
    last = all.map((worker) => worker.exit);
    return all.some((worker) => worker.state === "ended");
  }, 150_000).catch(() => {});
  expect(last).toContainEqual(expect.objectContaining(exit));
}

describe("A worker's end is told in the cluster's words:", () => {
  it("it ran out of memory", { timeout: 120_000 }, async () => {
    const endpoint = await makeEndpoint(server, image, cpu);
    await complete(server, endpoint);
    await submit(server, endpoint, { gb: 2 });
    await ended(endpoint, { note: "it ran out of memory", cause: "memory" });
    await remove(endpoint);
  });

  it("a pod of higher priority took its place, and its job goes to another worker", { timeout: 180_000 }, async () => {
    const endpoint = await makeEndpoint(server, image, { ...cpu, vcpuCount: 1 });
    await complete(server, endpoint);
    const id = await submit(server, endpoint, { seconds: 20 });
    await until(async () => (await statusOf(server, endpoint, id)).status === "IN_PROGRESS");
    const [node] = JSON.parse(cluster.kubectl("get", "nodes", "--output=json")).items;
    cluster.apply({
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name: "important", namespace },
      spec: {
        priorityClassName: "high",
        terminationGracePeriodSeconds: 1,
        containers: [
          {
            name: "important",
            image: "millrace.test/pause:1",
            resources: { requests: { cpu: node.status.allocatable.cpu } },
          },
        ],
      },
    });
    const note = expect.stringContaining("the cluster gave its place to a pod of higher priority");
    await ended(endpoint, { note, cause: "host" });
    await until(async () =>
      (await statusOf(server, endpoint, id)).waitDetail?.includes("no node of the cluster has room for it"),
    );
    cluster.kubectl("delete", "pod", "important", `--namespace=${namespace}`);
    await until(async () => (await statusOf(server, endpoint, id)).status === "COMPLETED", 90_000);
    await remove(endpoint);
  });

  it("somebody has deleted its pod, and its job goes to another worker", { timeout: 180_000 }, async () => {
    const endpoint = await makeEndpoint(server, image, cpu);
    await complete(server, endpoint);
    const id = await submit(server, endpoint, { seconds: 5 });
    await until(async () => (await statusOf(server, endpoint, id)).status === "IN_PROGRESS");
    const [worker] = await workersOf(server, endpoint);
    cluster.kubectl("delete", "pod", `millrace-${worker?.id}`, `--namespace=${namespace}`, "--wait=false");
    await ended(endpoint, { note: "its pod was deleted by something else", cause: "host" });
    await until(async () => (await statusOf(server, endpoint, id)).status === "COMPLETED", 90_000);
    await remove(endpoint);
  });

  it("its node is gone, and its job goes to another node", { timeout: 300_000 }, async () => {
    const endpoint = await makeEndpoint(server, image, cpu);
    await complete(server, endpoint);
    const [before] = await workersOf(server, endpoint);
    await cluster.node.stopKubelet();
    cluster.kubectl("delete", "node", "node1");
    await ended(endpoint, { note: expect.stringMatching(/^its node is gone|^its node stopped/), cause: "host" });
    const id = await submit(server, endpoint, {});
    cluster.node.startKubelet();
    await until(async () => (await statusOf(server, endpoint, id)).status === "COMPLETED", 120_000);
    const [after] = await workersOf(server, endpoint);
    expect(after?.id).not.toBe(before?.id);
    await remove(endpoint);
  });
});
