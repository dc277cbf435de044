import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { makeNodeImage } from "../../scripts/images.mjs";
import { startCluster, type TestCluster } from "../../scripts/kubernetes/cluster.mjs";
import { complete, inState } from "../e2e/life.js";
import { statusOf, submit } from "../e2e/wire.js";
import { call, makeEndpoint, startServer, type TestServer, until } from "../harness.js";
import { clusterSettings, clusterStartMs, namespace, podsIn } from "./scene.js";

const image = "millrace.test/writer:1";
/** Writes as many megabytes into a file as it is told to, and tells how much the file's place can hold. */
const handler = `
import { closeSync, existsSync, openSync, statfsSync, writeSync } from "node:fs";
import { dirname } from "node:path";
const megabyte = Buffer.alloc(1_000_000, "x");
export default async ({ path, megabytes = 1, isToWait = false }) => {
  const file = openSync(path, "w");
  for (let n = 0; n < megabytes; n++) writeSync(file, megabyte);
  closeSync(file);
  if (isToWait) await new Promise(() => setInterval(() => {}, 1_000));
  const { bsize, blocks } = statfsSync(dirname(path));
  const hasToken = existsSync("/var/run/secrets/kubernetes.io/serviceaccount/token");
  return { megabytes, room: bsize * blocks, hasToken };
};
`;

let cluster: TestCluster;
let server: TestServer;
beforeAll(async () => {
  cluster = await startCluster();
  const file = join(cluster.home, "handler.mjs");
  writeFileSync(file, handler);
  makeNodeImage(cluster, image, { handler: file });
  cluster.kubectl("create", "namespace", namespace);
  cluster.kubectl("create", "serviceaccount", "identity", `--namespace=${namespace}`);
  cluster.apply({
    apiVersion: "node.k8s.io/v1",
    kind: "RuntimeClass",
    metadata: { name: "plain" },
    handler: "runc", // what containerd calls its own
  });
  const pods = join(cluster.home, "pods.yaml");
  const identified = { serviceAccountName: "identity", automountServiceAccountToken: true };
  const classes = [
    { name: "identified", spec: identified },
    { name: "unknown", spec: { runtimeClassName: "sandbox" } },
  ];
  const documents = [{ spec: { runtimeClassName: "plain" } }, ...classes];
  writeFileSync(pods, documents.map((each) => JSON.stringify(each)).join("\n---\n"));
  const settings = {
    ...(await clusterSettings(cluster)),
    MILLRACE_KUBERNETES_POD: pods,
    MILLRACE_KUBERNETES_STORAGE_CLASS: "nowhere",
    MILLRACE_KUBERNETES_MEMORY: "1",
  };
  server = await startServer(settings, { podLookMs: 1_000, scaleUpsMs: 1_000 });
}, clusterStartMs);
afterAll(async () => {
  await server?.end();
  await cluster?.end();
});

const cpu = { computeType: "CPU", workersMax: 1, idleTimeout: 60 };
const remove = async (endpoint: string) => {
  await call(server, "DELETE", `/sdk/v1/endpoints/${endpoint}`);
  await expect.poll(() => podsIn(cluster)).toEqual([]);
};
/** The specification of the only pod. */
const onlyPod = () => {
  const { items } = JSON.parse(cluster.kubectl("get", "pods", `--namespace=${namespace}`, "--output=json"));
  expect(items).toHaveLength(1);
  return items[0].spec;
};
const detailOf = async (endpoint: string, id: string): Promise<string> =>
  (await statusOf(server, endpoint, id)).waitDetail ?? "";

it("Shared memory has the size of the worker's memory", { timeout: 120_000 }, async () => {
  const endpoint = await makeEndpoint(server, image, cpu);
  const { output } = await complete(server, endpoint, { path: "/dev/shm/file", megabytes: 300 });
  expect(output).toMatchObject({ megabytes: 300, room: 2 ** 30 });
  await remove(endpoint);
});

it("A worker that writes more than containerDiskInGb is evicted, and its job's error says so", {
  timeout: 300_000,
}, async () => {
  const endpoint = await makeEndpoint(server, image, cpu, { containerDiskInGb: 1 });
  const id = await submit(server, endpoint, { path: "/file", megabytes: 1_100, isToWait: true });
  const words = /its node evicted it \(.*exceeds the total limit of containers 1G\.\)/;
  expect((await inState(server, endpoint, "ended", { withinMs: 90_000 })).exit).toMatchObject({
    cause: "memory",
    note: expect.stringMatching(words),
  });
  const failed = await until(async () => {
    const job = await statusOf(server, endpoint, id);
    return job.status === "FAILED" && job;
  }, 180_000);
  expect(failed.error).toMatch(/^Each worker that ran this job was lost/);
  expect(failed.error).toMatch(words);
  await remove(endpoint);
});

it("A volume whose storage class does not exist is waited for, in words, and the job runs when it does", {
  timeout: 180_000,
}, async () => {
  const made = await call(server, "POST", "/v1/networkvolumes", { name: "shared", size: 10, dataCenterId: "US-TX-3" });
  const endpoint = await makeEndpoint(server, image, { ...cpu, networkVolumeId: made.body.id });
  const id = await submit(server, endpoint, { path: "/runpod-volume/file" });
  await expect
    .poll(() => detailOf(endpoint, id))
    .toContain(
      `its volume has no storage yet: of the claim millrace-volume-${made.body.id} the cluster says: storageclass.storage.k8s.io "nowhere" not found`,
    );
  cluster.apply(
    {
      apiVersion: "storage.k8s.io/v1",
      kind: "StorageClass",
      metadata: { name: "nowhere" },
      provisioner: "kubernetes.io/no-provisioner",
    },
    {
      apiVersion: "v1",
      kind: "PersistentVolume",
      metadata: { name: "one" },
      spec: {
        storageClassName: "nowhere",
        accessModes: ["ReadWriteOnce"],
        capacity: { storage: "20G" },
        hostPath: { path: join(cluster.home, "volume"), type: "DirectoryOrCreate" },
      },
    },
  );
  await until(async () => (await statusOf(server, endpoint, id)).status === "COMPLETED", 120_000);
  await remove(endpoint);
});

describe("What an operator's file says of pods is so in the cluster:", () => {
  it("a runtime class for all, and a service account for a class", { timeout: 120_000 }, async () => {
    const plain = await makeEndpoint(server, image, cpu);
    expect((await complete(server, plain, { path: "/file" })).output).toMatchObject({ hasToken: false });
    expect(onlyPod()).toMatchObject({ runtimeClassName: "plain", serviceAccountName: "default" });
    await remove(plain);
    const identified = await makeEndpoint(server, image, { ...cpu, podClass: "identified" });
    expect((await complete(server, identified, { path: "/file" })).output).toMatchObject({ hasToken: true });
    expect(onlyPod()).toMatchObject({ runtimeClassName: "plain", serviceAccountName: "identity" });
    await remove(identified);
  });

  it("a runtime class that the cluster does not have is named", { timeout: 60_000 }, async () => {
    const endpoint = await makeEndpoint(server, image, { ...cpu, podClass: "unknown" });
    const id = await submit(server, endpoint, { path: "/file" });
    await expect
      .poll(() => detailOf(endpoint, id), { timeout: 30_000 })
      .toMatch(/the cluster does not admit its pod: .*RuntimeClass "sandbox" not found/);
    await remove(endpoint);
  });
});
