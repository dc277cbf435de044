import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startCluster, type TestCluster } from "../../scripts/kubernetes/cluster.mjs";
import { fakeNodes } from "../../scripts/kubernetes/fake-nodes.mjs";
import { fakeWorkers } from "../../scripts/kubernetes/fake-workers.mjs";
import { complete } from "../e2e/life.js";
import { statusOf, submit } from "../e2e/wire.js";
import { call, makeEndpoint, startServer, type TestServer, until } from "../harness.js";
import { clusterSettings, clusterStartMs, namespace, podsIn } from "./scene.js";

/** The scheduler and the controllers are real, and three nodes are not: each has room for two workers. */
const nodes = ["fake-0", "fake-1", "fake-2"];
const resources = { cpu: "2", memory: "64Gi", pods: "100", "ephemeral-storage": "1Ti" };

let cluster: TestCluster;
let played: Awaited<ReturnType<typeof fakeNodes>>;
const workers = fakeWorkers();
beforeAll(async () => {
  cluster = await startCluster({ hasNode: false, settings: { controllers: ["--node-monitor-grace-period=3h"] } });
  cluster.kubectl("create", "namespace", namespace);
  played = await fakeNodes(cluster, nodes.length, workers, resources);
}, clusterStartMs);
afterAll(async () => {
  await workers.end();
  await played?.end();
  await cluster?.end();
});

/** The nodes that pods are on. */
const nodesInUse = (): string[] => {
  const columns = "--output=jsonpath={range .items[*]}{.spec.nodeName}{'\\n'}{end}";
  return cluster.kubectl("get", "pods", `--namespace=${namespace}`, columns).split("\n").filter(Boolean);
};
const bindingMode = "WaitForFirstConsumer";
const storageClass = (name: string) => ({
  apiVersion: "storage.k8s.io/v1",
  kind: "StorageClass",
  metadata: { name },
  provisioner: "kubernetes.io/no-provisioner",
  volumeBindingMode: bindingMode,
});
const volume = (storageClassName: string, name: string, where: object) => ({
  apiVersion: "v1",
  kind: "PersistentVolume",
  metadata: { name },
  spec: { storageClassName, accessModes: ["ReadWriteOnce"], capacity: { storage: "20G" }, ...where },
});
/** A volume on a disk of one node. */
const localVolume = (node: string) =>
  volume("local", `local-${node}`, {
    local: { path: "/volume" },
    nodeAffinity: {
      required: {
        nodeSelectorTerms: [{ matchExpressions: [{ key: "kubernetes.io/hostname", operator: "In", values: [node] }] }],
      },
    },
  });

describe.each([
  { of: "disks of nodes", name: "local", volumes: nodes.map(localVolume) },
  // as disks of a cloud: they go to any node, but only to one at a time
  { of: "a network", name: "remote", volumes: [volume("remote", "remote", { hostPath: { path: "/volume" } })] },
])("A volume of one node, from $of, which the first worker decides on", ({ name, volumes }) => {
  let server: TestServer;
  beforeAll(async () => {
    cluster.apply(storageClass(name), ...volumes);
    const settings = { ...(await clusterSettings(cluster)), MILLRACE_KUBERNETES_STORAGE_CLASS: name };
    server = await startServer(settings, { podLookMs: 1_000, scaleUpsMs: 1_000 });
  }, 60_000);
  afterAll(async () => {
    await server?.end();
  });

  it("has all its workers on that node, and the next one waits, in words, until there is room", {
    timeout: 120_000,
  }, async () => {
    const made = await call(server, "POST", "/v1/networkvolumes", { name, size: 10, dataCenterId: "US-TX-3" });
    const endpoint = () =>
      makeEndpoint(server, "me/worker:1", {
        computeType: "CPU",
        vcpuCount: 1,
        workersMax: 1,
        idleTimeout: 600,
        networkVolumeId: made.body.id,
      });
    const [first, second, third] = [await endpoint(), await endpoint(), await endpoint()];
    for (const each of [first, second]) await complete(server, each, { n: 1 });
    expect(nodesInUse()).toHaveLength(2);
    expect(new Set(nodesInUse()).size).toBe(1);
    const [home] = nodesInUse();

    const id = await submit(server, third, { n: 3 });
    const job = () => statusOf(server, third, id);
    await expect
      .poll(async () => (await job()).waitDetail, { timeout: 20_000 })
      .toMatch(
        /no node of the cluster that can mount its volume has room for it: 0\/3 nodes are available: 1 Insufficient cpu/,
      );
    await call(server, "DELETE", `/sdk/v1/endpoints/${first}`);
    await until(async () => (await job()).status === "COMPLETED", 60_000);
    await expect.poll(nodesInUse).toEqual([home, home]);
    for (const each of [second, third]) await call(server, "DELETE", `/sdk/v1/endpoints/${each}`);
    await expect.poll(() => podsIn(cluster)).toEqual([]);
  });
});
