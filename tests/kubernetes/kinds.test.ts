import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { makeNodeImage } from "../../scripts/images.mjs";
import { startCluster, type TestCluster } from "../../scripts/kubernetes/cluster.mjs";
import { call, makeEndpoint, startServer, type TestServer, until } from "../harness.js";
import { podsOf } from "../pods/pod-calls.js";
import { clusterSettings, clusterStartMs, namespace, podsIn } from "./scene.js";

const image = "millrace.test/node:1";
/** Counts its starts in its volume, and answers HTTP with their number. */
const program = (file: string) => `
const { appendFileSync, readFileSync } = require("node:fs");
appendFileSync("${file}", "x");
const port = Number(process.env.PORT || 8888);
require("node:http").createServer((_, reply) => reply.end(readFileSync("${file}", "utf8"))).listen(port);
process.on("SIGTERM", () => process.exit(0));
`;

let cluster: TestCluster;
let server: TestServer;
beforeAll(async () => {
  cluster = await startCluster();
  makeNodeImage(cluster, image, {});
  cluster.kubectl("create", "namespace", namespace);
  for (const name of ["one", "two"]) volume(name);
  const settings = { ...(await clusterSettings(cluster)), MILLRACE_KUBERNETES_STORAGE_CLASS: "of-tests" };
  server = await startServer(settings, { podVolumesGapMs: 500 });
}, clusterStartMs);
afterAll(async () => {
  await server?.end();
  await cluster?.end();
});

/** What a storage class would make: a volume that a claim can have. */
function volume(name: string): void {
  const path = join(cluster.home, "volumes", name);
  mkdirSync(path, { recursive: true });
  cluster.apply({
    apiVersion: "v1",
    kind: "PersistentVolume",
    metadata: { name },
    spec: {
      storageClassName: "of-tests",
      accessModes: ["ReadWriteOnce"],
      capacity: { storage: "20G" },
      hostPath: { path },
      persistentVolumeReclaimPolicy: "Retain",
    },
  });
}

const claims = () => cluster.kubectl("get", "pvc", `--namespace=${namespace}`, "--output=name");

describe("In a cluster", () => {
  it("a load balancing endpoint's requests go to its pods, which share a network volume", {
    timeout: 180_000,
  }, async () => {
    const made = await call(server, "POST", "/v1/networkvolumes", {
      name: "shared",
      size: 10,
      dataCenterId: "US-TX-3",
    });
    expect(made.status, JSON.stringify(made.body)).toBe(200);
    const settings = {
      type: "LB",
      computeType: "CPU",
      workersMax: 1,
      idleTimeout: 60,
      scalerType: "REQUEST_COUNT",
      scalerValue: 10,
      networkVolumeId: made.body.id,
    };
    const template = { dockerEntrypoint: [process.execPath], dockerStartCmd: ["-e", program("/runpod-volume/starts")] };
    const endpoint = await makeEndpoint(server, image, settings, template);
    const ask = async () => {
      const headers = { authorization: `Bearer ${server.key}` };
      const reply = await fetch(`${server.url}/lb/${endpoint}/any`, { headers });
      return `${reply.status} ${await reply.text()}`;
    };
    expect(await ask()).toBe("200 x");
    expect(claims()).toBe(`persistentvolumeclaim/millrace-volume-${made.body.id}`);
    cluster.kubectl("delete", "pods", "--all", `--namespace=${namespace}`);
    expect(await until(async () => (await ask()) === "200 xx", 60_000)).toBe(true);

    // its claim grows with it if the storage class lets it
    const size = [
      "get",
      "pvc",
      `--namespace=${namespace}`,
      "--output=jsonpath={.items[0].spec.resources.requests.storage}",
    ];
    await call(server, "PATCH", `/v1/networkvolumes/${made.body.id}`, { size: 15 });
    cluster.kubectl("delete", "pods", "--all", `--namespace=${namespace}`);
    expect(await until(async () => (await ask()) === "200 xxx", 60_000)).toBe(true);
    expect(cluster.kubectl(...size)).toBe("10G");
    expect(server.log()).toMatch(/has 10G and cannot get the 15 GB of its volume: .*resize/);
    cluster.apply({
      apiVersion: "storage.k8s.io/v1",
      kind: "StorageClass",
      metadata: { name: "of-tests" },
      provisioner: "tests.example/none",
      allowVolumeExpansion: true,
    });
    cluster.kubectl("delete", "pods", "--all", `--namespace=${namespace}`);
    expect(await until(async () => (await ask()) === "200 xxxx", 60_000)).toBe(true);
    expect(cluster.kubectl(...size)).toBe("15G");

    await call(server, "DELETE", `/sdk/v1/endpoints/${endpoint}`);
    await expect.poll(() => podsIn(cluster), { timeout: 60_000 }).toEqual([]);
    const removed = () => call(server, "DELETE", `/v1/networkvolumes/${made.body.id}`);
    await expect.poll(async () => (await removed()).status, { timeout: 30_000 }).toBe(204);
    await expect.poll(claims, { timeout: 30_000 }).toBe("");
  });

  it("a pod of the management API runs, keeps its volume over a stop, and leaves nothing", {
    timeout: 180_000,
  }, async () => {
    const pods = podsOf(server);
    const { id } = await pods.create({
      imageName: image,
      dockerEntrypoint: [process.execPath],
      dockerStartCmd: ["-e", program("/data/starts")],
      volumeInGb: 1,
      volumeMountPath: "/data",
      ports: ["8888/http"],
    });
    const answer = () =>
      until(async () => {
        const { privateIp } = await pods.show(id);
        const reply = privateIp ? await fetch(`http://${privateIp}:8888/`).catch(() => undefined) : undefined;
        return reply?.text();
      }, 60_000);
    expect(await answer()).toBe("x");
    await pods.act(id, "stop");
    await expect.poll(() => podsIn(cluster), { timeout: 60_000 }).toEqual([]);
    await pods.act(id, "start");
    expect(await answer()).toBe("xx");
    await pods.remove(id);
    await expect.poll(() => [...podsIn(cluster), claims()], { timeout: 60_000 }).toEqual([""]);
  });
});
