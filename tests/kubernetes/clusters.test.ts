import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parse, stringify } from "yaml";
import { makeNodeImage } from "../../scripts/images.mjs";
import { startCluster, type TestCluster } from "../../scripts/kubernetes/cluster.mjs";
import { complete, workersOf } from "../e2e/life.js";
import { statusOf, submit } from "../e2e/wire.js";
import { call, makeEndpoint, startServer, type TestServer, until } from "../harness.js";
import { clusterSettings, clusterStartMs, namespace, podsIn } from "./scene.js";

/** One service with two clusters. */
const image = "millrace.test/node:1";

let rack: TestCluster;
let cloud: TestCluster;
let folder: string;
let server: TestServer;
let settings: Record<string, string>;
beforeAll(async () => {
  rack = await startCluster();
  cloud = await startCluster();
  folder = mkdtempSync(join(tmpdir(), "millrace-clusters-"));
  const handler = join(folder, "handler.mjs");
  writeFileSync(handler, "export default ({ n }) => (console.log('ran', n), n);\n");
  for (const each of [rack, cloud]) {
    makeNodeImage(each, image, { handler });
    each.kubectl("create", "namespace", namespace);
  }
  const pods = "spec: {}\n---\nname: marked\nmetadata: { labels: { of: class } }\nspec: { priorityClassName: low }\n";
  writeFileSync(join(folder, "pods.yaml"), pods);
  for (const each of [rack, cloud])
    each.apply({ apiVersion: "scheduling.k8s.io/v1", kind: "PriorityClass", metadata: { name: "low" }, value: -5 });
  settings = {
    ...(await clusterSettings(rack)),
    KUBECONFIG: join(folder, "both"),
    MILLRACE_KUBERNETES_CONTEXT: "rack, cloud",
    MILLRACE_KUBERNETES_POD: join(folder, "pods.yaml"),
    MILLRACE_PLACES: "cluster,machines",
  };
  writeFileSync(join(folder, "both"), stringify(both()));
  server = await startServer(settings);
}, clusterStartMs);
afterAll(async () => {
  await server?.end();
  await Promise.all([rack?.end(), cloud?.end()]);
  if (folder) rmSync(folder, { recursive: true });
});

/** A kubeconfig with a context for each cluster. */
function both(): object {
  const named = ([name, { kubeconfig }]: [string, TestCluster]) => {
    const { clusters, users } = parse(readFileSync(kubeconfig, "utf8"));
    return {
      cluster: { ...clusters[0], name },
      user: { ...users[0], name },
      context: { name, context: { cluster: name, user: name } },
    };
  };
  const parts = Object.entries({ rack, cloud }).map(named);
  return {
    apiVersion: "v1",
    kind: "Config",
    clusters: parts.map(({ cluster }) => cluster),
    users: parts.map(({ user }) => user),
    contexts: parts.map(({ context }) => context),
  };
}

const make = (more: Record<string, unknown> = {}) =>
  makeEndpoint(server, image, { computeType: "CPU", workersMax: 1, idleTimeout: 600, ...more });
const remove = (endpoint: string) => call(server, "DELETE", `/sdk/v1/endpoints/${endpoint}`);
const names = () => [rack, cloud].map((each) => podsIn(each).map((line) => line.split(" ")[0]));
const counts = () => [rack, cloud].map((each) => podsIn(each).length);
const nothingLeft = () => expect.poll(counts, { timeout: 60_000 }).toEqual([0, 0]);

describe("With two clusters", () => {
  it("endpoints run in the first one, or where they say, and their logs are read from there", {
    timeout: 180_000,
  }, async () => {
    const anywhere = await make();
    const named = await make({ place: "cluster/cloud", podClass: "marked" });
    await complete(server, anywhere, { n: 1 });
    expect(counts()).toEqual([1, 0]);
    await complete(server, named, { n: 2 });
    expect(counts()).toEqual([1, 1]);
    const [pod] = JSON.parse(cloud.kubectl("get", "pods", `--namespace=${namespace}`, "--output=json")).items;
    expect(pod.metadata.labels).toMatchObject({ of: "class" });
    expect(pod.spec).toMatchObject({ priority: -5 });
    for (const [endpoint, n] of [
      [anywhere, 1],
      [named, 2],
    ] as const) {
      const [worker] = await workersOf(server, endpoint);
      const headers = { authorization: `Bearer ${server.key}` };
      const logs = async () => (await fetch(`${server.url}/v1/workers/${worker?.id}/logs`, { headers })).text();
      expect(await until(async () => (await logs()).includes(`ran ${n}`), 20_000)).toBe(true);
    }
    const { body } = await call(server, "GET", "/v1/hosts");
    expect(body.flatMap(({ cluster }: { cluster?: { name: string } }) => cluster?.name ?? [])).toEqual([
      "rack",
      "cloud",
    ]);
    const refused = await call(server, "PATCH", `/v1/endpoints/${anywhere}`, { place: "cluster/moon" });
    expect([refused.status, refused.body.error]).toEqual([
      400,
      expect.stringContaining("no cluster here has that name"),
    ]);
    for (const each of [anywhere, named]) await remove(each);
    await nothingLeft();
  });

  it("what the first has no room for goes to the second", { timeout: 180_000 }, async () => {
    const allocatable = rack.kubectl("get", "nodes", "--output=jsonpath={.items[0].status.allocatable.cpu}");
    const vcpuCount = Math.floor(
      allocatable.endsWith("m") ? Number.parseInt(allocatable, 10) / 1_000 : Number(allocatable),
    );
    const [first, second] = [await make({ vcpuCount }), await make({ vcpuCount })];
    await complete(server, first, { n: 1 });
    const id = await submit(server, second, { n: 2 });
    const waits = async () => (await statusOf(server, second, id)).waitDetail?.includes("Insufficient cpu");
    expect(await until(waits, 30_000)).toBe(true);
    expect(await until(async () => (await statusOf(server, second, id)).status === "COMPLETED", 120_000)).toBe(true);
    await expect.poll(counts, { timeout: 20_000 }).toEqual([1, 1]);
    for (const each of [first, second]) await remove(each);
    await nothingLeft();
  });

  it("each keeps its workers while the other's API server is away, and over a crash of the server", {
    timeout: 240_000,
  }, async () => {
    const [inRack, inCloud] = [await make({ place: "cluster/rack" }), await make({ place: "cluster/cloud" })];
    for (const each of [inRack, inCloud]) await complete(server, each, { n: 1 });
    const before = names();
    await rack.stop("api");
    await complete(server, inCloud, { n: 2 });
    await complete(server, inRack, { n: 2 }); // its worker needs no API server
    await server.kill();
    await server.restart();
    await complete(server, inCloud, { n: 3 });
    rack.start("api");
    await rack.untilApiAnswers();
    await complete(server, inRack, { n: 3 });
    expect(names()).toEqual(before);
    for (const each of [inRack, inCloud]) await remove(each);
    await nothingLeft();
  });
});
