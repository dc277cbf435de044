import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { startDocker, type TestDocker } from "../../scripts/docker.mjs";
import { makeNodeImage } from "../../scripts/images.mjs";
import { startCluster, type TestCluster } from "../../scripts/kubernetes/cluster.mjs";
import { complete, workersOf } from "../e2e/life.js";
import { statusOf, submit } from "../e2e/wire.js";
import { call, makeEndpoint, startServer, type TestServer, until } from "../harness.js";
import { clusterSettings, clusterStartMs, namespace, podsIn } from "./scene.js";

/** One service with a Docker engine and a cluster at once, each with as many processors as this machine has. */
const image = "millrace.test/node:1";
const all = availableParallelism();

let cluster: TestCluster;
let engine: TestDocker;
let server: TestServer;
beforeAll(async () => {
  cluster = await startCluster();
  engine = await startDocker();
  const folder = mkdtempSync(join(tmpdir(), "millrace-image-"));
  const handler = join(folder, "handler.mjs");
  writeFileSync(handler, "export default () => 'done';\n");
  for (const each of [cluster, engine]) makeNodeImage(each, image, { handler });
  rmSync(folder, { recursive: true });
  cluster.kubectl("create", "namespace", namespace);
  addGpuNode();
  server = await startServer({
    ...(await clusterSettings(cluster)),
    MILLRACE_CONTAINERS: "on",
    DOCKER_HOST: engine.host,
  });
}, clusterStartMs);
afterAll(async () => {
  await server?.end();
  await cluster?.end();
  await engine?.end();
});

/** A node that exists only in the API. Its labels are those that GPU feature discovery sets. */
function addGpuNode(name = "gpus", product = "NVIDIA-Test-9000-80GB", more: Record<string, string> = {}): void {
  const labels = { "nvidia.com/gpu.product": product, "nvidia.com/gpu.memory": "81920", ...more };
  cluster.create("/api/v1/nodes", { apiVersion: "v1", kind: "Node", metadata: { name, labels } });
  const allocatable = {
    cpu: "8",
    memory: "64Gi",
    pods: "10",
    "ephemeral-storage": "100Gi",
    "nvidia.com/gpu": "4",
  };
  const conditions = [{ type: "Ready", status: "True", reason: "KubeletReady" }];
  const status = JSON.stringify({ status: { allocatable, capacity: allocatable, conditions } });
  cluster.kubectl("patch", "node", name, "--subresource=status", "--type=merge", `--patch=${status}`);
  // a new node is closed until a controller has seen it
  cluster.kubectl("patch", "node", name, "--type=merge", '--patch={"spec":{"taints":[]}}');
}

/** Removes pods without the word of a kubelet, which these nodes do not have. */
function removePods(...which: string[]): void {
  const names = cluster
    .kubectl("get", "pods", `--namespace=${namespace}`, ...which, "--output=name")
    .split("\n")
    .filter(Boolean);
  // the server may have removed them meanwhile
  const atOnce = [`--namespace=${namespace}`, "--grace-period=0", "--force", "--ignore-not-found"];
  for (const name of names) cluster.kubectl("delete", name, ...atOnce);
}

/** An endpoint whose worker needs all processors of a machine. */
const wide = (more: Record<string, unknown> = {}) =>
  makeEndpoint(server, image, { computeType: "CPU", vcpuCount: all, workersMax: 1, idleTimeout: 600, ...more });
const remove = (endpoint: string) => call(server, "DELETE", `/sdk/v1/endpoints/${endpoint}`);
const containers = () => engine.docker("ps", "--quiet").split("\n").filter(Boolean).length;
/** Pods that a node has taken. */
const placed = () => podsIn(cluster).filter((line) => !line.endsWith(" Pending")).length;

it("shows the GPUs of the cluster's nodes, and endpoints may ask for their types, in order", {
  timeout: 240_000,
}, async () => {
  const hosts = async () => (await call(server, "GET", "/v1/hosts")).body as { cluster?: { gpuTypes?: object[] } }[];
  const gpuTypes = await until(async () => (await hosts()).flatMap(({ cluster }) => cluster?.gpuTypes ?? [])[0]);
  expect(gpuTypes).toEqual({ name: "NVIDIA Test 9000 80GB", memoryInGb: 80, count: 4, held: 0 });
  const gpus = { computeType: "GPU", gpuCount: 3, gpuTypeIds: ["NVIDIA Test 9000 80GB"], place: "cluster" };
  const endpoint = await makeEndpoint(server, image, { ...gpus, workersMin: 1 });
  await until(async () => (await hosts()).some(({ cluster }) => JSON.stringify(cluster ?? {}).includes('"held":3')));
  const [pod] = JSON.parse(cluster.kubectl("get", "pods", `--namespace=${namespace}`, "--output=json")).items;
  expect(JSON.stringify(pod.spec.affinity)).toContain('"values":["NVIDIA-Test-9000-80GB"]');
  const metrics = await fetch(`${server.url}/metrics`, { headers: { authorization: `Bearer ${server.key}` } });
  expect(await metrics.text()).toMatch(/millrace_gpus\{state="held"\} 3\n/);
  await remove(endpoint);
  removePods();
  cluster.kubectl("delete", "node", "gpus");
});

it("a GPU type that comes first is preferred, although nodes with another one are empty", {
  timeout: 120_000,
}, async () => {
  addGpuNode("l4", "NVIDIA-L4");
  addGpuNode("a40", "NVIDIA-A40");
  const container = { name: "filler", image: "none", resources: { requests: { cpu: "6", memory: "30Gi" } } };
  const filler = { metadata: { name: "filler" }, spec: { nodeName: "l4", containers: [container] } };
  cluster.create(`/api/v1/namespaces/${namespace}/pods`, { apiVersion: "v1", kind: "Pod", ...filler });
  const ours = "--selector=app.kubernetes.io/name=millrace-worker";
  for (const [gpuTypeIds, node] of [
    [["NVIDIA L4", "NVIDIA A40"], "l4"],
    [["NVIDIA A40", "NVIDIA L4"], "a40"],
  ]) {
    const asking = { computeType: "GPU", gpuCount: 1, gpuTypeIds, place: "cluster" };
    const endpoint = await makeEndpoint(server, image, { ...asking, workersMin: 1, workersMax: 1 });
    const nodes = () =>
      cluster.kubectl("get", "pods", `--namespace=${namespace}`, ours, "--output=jsonpath={.items[*].spec.nodeName}");
    await expect.poll(nodes, { timeout: 30_000 }).toBe(node);
    await remove(endpoint);
    removePods(ours);
  }
  removePods();
  cluster.kubectl("delete", "node", "l4", "a40");
});

it("a worker gets a node whose driver supports its CUDA version", { timeout: 120_000 }, async () => {
  const cuda = (minor: string) => ({
    "nvidia.com/cuda.runtime-version.major": "12",
    "nvidia.com/cuda.runtime-version.minor": minor,
  });
  addGpuNode("old", "NVIDIA-L4", cuda("4"));
  addGpuNode("new", "NVIDIA-L4", cuda("10"));
  const ours = "--selector=app.kubernetes.io/name=millrace-worker";
  const nodes = () =>
    cluster.kubectl("get", "pods", `--namespace=${namespace}`, ours, "--output=jsonpath={.items[*].spec.nodeName}");
  const asking = {
    computeType: "GPU",
    gpuCount: 2,
    gpuTypeIds: ["NVIDIA L4"],
    place: "cluster",
    minCudaVersion: "12.8",
  };
  const endpoint = await makeEndpoint(server, image, { ...asking, workersMin: 2, workersMax: 2 });
  await expect.poll(nodes, { timeout: 30_000 }).toBe("new new");
  await remove(endpoint);
  const newer = await makeEndpoint(server, image, { ...asking, minCudaVersion: "13.0", workersMax: 1 });
  const id = await submit(server, newer, {});
  await expect
    .poll(async () => (await statusOf(server, newer, id)).waitDetail, { timeout: 30_000 })
    .toMatch(/no node of the cluster with NVIDIA L4 and a driver for CUDA 13\.0 has room for it: .* node affinity/);
  await remove(newer);
  removePods(ours);
  cluster.kubectl("delete", "node", "old", "new");
});

it("overflows from a full machine to the cluster, and back", { timeout: 300_000 }, async () => {
  const first = await wide();
  await complete(server, first);
  expect([containers(), podsIn(cluster).length]).toEqual([1, 0]);

  // the node keeps a little for itself
  const second = await wide({ vcpuCount: undefined });
  await complete(server, second);
  const others = await wide({ vcpuCount: all > 2 ? all - 1 : 1 });
  await complete(server, others);
  // a job may be done before the node has said that its pod runs
  await expect.poll(() => [containers(), placed()], { timeout: 10_000 }).toEqual([2, 1]);

  // neither has room
  const third = await wide();
  const id = await submit(server, third, {});
  const { waitDetail } = await until(async () => {
    const job = await statusOf(server, third, id);
    return job.waitDetail?.includes("no node of the cluster has room") && job;
  }, 30_000);
  expect(waitDetail).toMatch(/Insufficient cpu/);
  const [pending] = await workersOf(server, third);

  await remove(first);
  await until(async () => (await statusOf(server, third, id)).status === "COMPLETED", 60_000);
  const [worker] = await workersOf(server, third);
  expect(worker?.id).not.toBe(pending?.id);
  expect(podsIn(cluster).map((line) => line.split(" ")[0])).not.toContain(`millrace-${pending?.id}`);
  for (const each of [second, others, third]) await remove(each);
  await expect.poll(() => [containers(), podsIn(cluster).length], { timeout: 60_000 }).toEqual([0, 0]);
});

it("runs an endpoint where it says", { timeout: 120_000 }, async () => {
  const inCluster = await wide({ vcpuCount: undefined, place: "cluster" });
  const onMachines = await wide({ vcpuCount: undefined, place: "machines" });
  for (const each of [inCluster, onMachines]) await complete(server, each);
  await expect.poll(() => [containers(), placed()], { timeout: 10_000 }).toEqual([1, 1]);
  const shown = await call(server, "GET", `/v1/endpoints/${inCluster}`);
  expect(shown.body).toMatchObject({ place: "cluster" });
  for (const each of [inCluster, onMachines]) await remove(each);
});
