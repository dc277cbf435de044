import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parseAllDocuments } from "yaml";
import { needed, toForward, toFreeze } from "../../packages/server/src/providers/kubernetes/rights.js";
import { makeNodeImage } from "../../scripts/images.mjs";
import { writeKubeconfig } from "../../scripts/kubernetes/certificates.mjs";
import { startCluster, type TestCluster } from "../../scripts/kubernetes/cluster.mjs";
import { complete, inState } from "../e2e/life.js";
import { statusOf, submit } from "../e2e/wire.js";
import { call, makeEndpoint, root, startServer, type TestServer, until } from "../harness.js";
import { podsOf } from "../pods/pod-calls.js";
import { askedBy, auditSettings } from "./audit.js";
import { Helm } from "./helm.js";
import { clusterSettings, clusterStartMs } from "./scene.js";

/** The namespace that rights.yaml names. */
const namespace = "millrace-workers";
const account = `system:serviceaccount:${namespace}:millrace`;
const image = "millrace.test/node:1";
/** Rights that no run here asks for, and why they are given. */
const unasked = [
  // Kubernetes asks for them from version 1.35 on, where a WebSocket is opened
  "create pods/exec",
  "create pods/portforward",
];

interface Manifest {
  readonly kind: string;
  readonly rules?: readonly { readonly resources: readonly string[]; readonly verbs: readonly string[] }[];
}
/** The rights that a manifest gives, such as `get pods/log`. */
const rightsIn = (text: string): string[] =>
  parseAllDocuments(text)
    .map((each) => each.toJS() as Manifest | null)
    .filter((each) => each?.kind === "Role" || each?.kind === "ClusterRole")
    .flatMap((each) => each?.rules ?? [])
    .flatMap(({ resources, verbs }) => resources.flatMap((resource) => verbs.map((verb) => `${verb} ${resource}`)));
const listed = (rights: typeof needed): string[] =>
  rights.flatMap(([resource, verbs]) => verbs.map((verb) => `${verb} ${resource}`));

const beside = readFileSync(join(root, "deploy/kubernetes/rights.yaml"), "utf8");
let helm: Helm;
let cluster: TestCluster;
let server: TestServer;
let folder: string;
/** The chart's, with everything that it can give. */
let inside: string;
beforeAll(async () => {
  helm = await Helm.open();
  inside = helm.template("--set", "workers.freeze=true", "--show-only", "templates/rights.yaml").text;
  folder = mkdtempSync(join(tmpdir(), "millrace-audit-"));
  cluster = await startCluster({ settings: { api: auditSettings(folder) } });
  makeNodeImage(cluster, image, { handler: join(root, "tests/docker/echo/handler.mjs"), programs: ["/bin/sh"] });
  cluster.kubectl("create", "namespace", namespace);
  cluster.kubectl("apply", `--namespace=${namespace}`, `--filename=${join(root, "deploy/kubernetes/rights.yaml")}`);
  // both kinds of servers in one: the right to freeze is the only one that the file lacks
  const metadata = { name: "freeze", namespace };
  const group = "rbac.authorization.k8s.io";
  cluster.apply(
    {
      apiVersion: `${group}/v1`,
      kind: "Role",
      metadata,
      rules: toFreeze.map(([resource, verbs]) => ({ apiGroups: [""], resources: [resource], verbs })),
    },
    {
      apiVersion: `${group}/v1`,
      kind: "RoleBinding",
      metadata,
      roleRef: { apiGroup: group, kind: "Role", name: metadata.name },
      subjects: [{ kind: "ServiceAccount", name: "millrace", namespace }],
    },
    {
      apiVersion: "storage.k8s.io/v1",
      kind: "StorageClass",
      metadata: { name: "of-tests" },
      provisioner: "tests.example/none",
      allowVolumeExpansion: true,
    },
    volume("one"),
    volume("two"),
  );
  const token = cluster.kubectl("create", "token", "millrace", `--namespace=${namespace}`);
  const settings = {
    ...(await clusterSettings(cluster)),
    KUBECONFIG: writeKubeconfig(cluster.home, "rights", { api: new URL(cluster.url).port, user: { token } }),
    MILLRACE_KUBERNETES_NAMESPACE: namespace,
    MILLRACE_KUBERNETES_STORAGE_CLASS: "of-tests",
    MILLRACE_KUBERNETES_FREEZE: "on",
  };
  server = await startServer(settings, { podVolumesGapMs: 500 });
}, clusterStartMs);
afterAll(async () => {
  await server?.end();
  await cluster?.end();
  helm?.close();
  if (folder) rmSync(folder, { recursive: true });
});

function volume(name: string): object {
  const path = join(cluster.home, "volumes", name);
  mkdirSync(path, { recursive: true });
  return {
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
  };
}

const podNames = () => cluster.kubectl("get", "pods", `--namespace=${namespace}`, "--output=name").split("\n");
const remove = async (endpoint: string) => {
  await call(server, "DELETE", `/sdk/v1/endpoints/${endpoint}`);
  await expect.poll(podNames).toEqual([""]);
};
const cpu = { computeType: "CPU", workersMax: 1, vcpuCount: 1 };

/** Everything that the service does in a cluster. */
const deeds: Readonly<Record<string, () => Promise<void>>> = {
  "workers are frozen, thawed, and found by the next server": async () => {
    const endpoint = await makeEndpoint(server, image, { ...cpu, idleTimeout: 1, flashboot: true });
    const { workerId } = await complete(server, endpoint);
    await inState(server, endpoint, "paused", { id: String(workerId) });
    await server.kill();
    await server.restart();
    expect((await complete(server, endpoint)).workerId).toBe(workerId);
    await remove(endpoint);
  },
  "load balancing workers with a volume that grows are reached, and the volume is removed": async () => {
    const of = { name: "shared", size: 10, dataCenterId: "US-TX-3" };
    const { id: networkVolumeId } = (await call(server, "POST", "/v1/networkvolumes", of)).body;
    const balanced = { type: "LB", scalerType: "REQUEST_COUNT", scalerValue: 10, idleTimeout: 60, networkVolumeId };
    const program = 'require("node:http").createServer((_, reply) => reply.end("ok")).listen(process.env.PORT)';
    const template = { dockerEntrypoint: [process.execPath], dockerStartCmd: ["-e", program] };
    const endpoint = await makeEndpoint(server, image, { ...cpu, ...balanced }, template);
    const ask = async () => {
      const headers = { authorization: `Bearer ${server.key}` };
      return (await fetch(`${server.url}/lb/${endpoint}/any`, { headers })).status;
    };
    expect(await ask(), server.log()).toBe(200);
    await call(server, "PATCH", `/v1/networkvolumes/${networkVolumeId}`, { size: 15 });
    cluster.kubectl("delete", "pods", "--all", `--namespace=${namespace}`);
    await expect.poll(ask).toBe(200);
    await remove(endpoint);
    const removed = () => call(server, "DELETE", `/v1/networkvolumes/${networkVolumeId}`);
    await expect.poll(async () => (await removed()).status).toBe(204);
  },
  "a pod that no node has room for is made again, with its secrets": async () => {
    const endpoint = await makeEndpoint(server, image, { ...cpu, computeType: "GPU", gpuCount: 2 });
    const id = await submit(server, endpoint, {});
    const hasNoNode = async () => (await statusOf(server, endpoint, id)).waitDetail?.includes("no node of the cluster");
    await until(hasNoNode, 30_000);
    const uid = () => cluster.kubectl("get", "pods", `--namespace=${namespace}`, "--output=jsonpath={..uid}");
    const before = uid();
    // what belonged to the pod is still there when the next one is made
    await cluster.stop("controllers");
    cluster.kubectl("delete", "pods", "--all", `--namespace=${namespace}`, "--grace-period=0", "--force");
    await until(() => !["", before].includes(uid()), 60_000);
    await until(() => askedBy(account, folder).some(({ right }) => right === "delete secrets"));
    cluster.start("controllers");
    await remove(endpoint);
  },
  "a pod of the management API has a volume": async () => {
    const pods = podsOf(server);
    const volumes = { volumeInGb: 1, volumeMountPath: "/data" };
    const endless = { dockerEntrypoint: [process.execPath], dockerStartCmd: ["-e", "setInterval(() => {}, 1000)"] };
    const { id } = await pods.create({ imageName: image, ...endless, ...volumes });
    const isThere = () => cluster.kubectl("get", "pods", `--namespace=${namespace}`).includes("Running");
    await until(isThere, 60_000);
    await pods.remove(id);
    const claims = () => cluster.kubectl("get", "pvc", `--namespace=${namespace}`, "--output=name");
    await expect.poll(() => [...podNames(), claims()]).toEqual(["", ""]);
  },
};

describe("The service's rights in a cluster", () => {
  it("are in the chart and in the file for a server outside those that the service says it needs", () => {
    const optional = ["list events", "list nodes"];
    expect(rightsIn(inside).sort()).toEqual([...listed([...needed, ...toFreeze]), ...optional].sort());
    expect(rightsIn(beside).sort()).toEqual([...listed([...needed, ...toForward]), ...optional].sort());
  });

  it.each(Object.keys(deeds))("are enough: %s", async (deed) => deeds[deed]?.(), 180_000);

  it("are no more than that: each has been asked for, and nothing else has", () => {
    const asked = askedBy(account, folder);
    expect(asked.filter(({ isAllowed }) => !isAllowed)).toEqual([]);
    const given = [...new Set([...rightsIn(inside), ...rightsIn(beside)])];
    expect([...asked.map(({ right }) => right), ...unasked].sort()).toEqual(given.sort());
  });
});
