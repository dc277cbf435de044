import { afterEach, expect, it } from "vitest";
import type { Endpoint } from "../../domain/endpoints/endpoint.js";
import type { HostFacts } from "../../domain/hosts/host.js";
import type { Place } from "../../domain/hosts/place.js";
import { limits } from "../../limits/index.js";
import type { LiveWorker } from "../../memory/registry.js";
import { createVolume } from "../../operations/volumes/save-volume.js";
import { endWorker } from "../../operations/workers/worker-life.js";
import { l4, plainHost } from "../../testing/facts-fixture.js";
import { Scene } from "../../testing/scene-fixture.js";
import { leavesCluster } from "./leave-cluster.js";

/** A machine and a cluster without a tender: a worker that it was given waits there for ever. */
const cluster: HostFacts = {
  ...plainHost,
  gpusEnforced: true,
  cpus: 0,
  memoryMib: 0,
  cannotRun: ["directory"],
  cluster: { name: "default", memoryMib: 2_048, gpuMemoryMib: 16_384 },
};
let machine: HostFacts;
let clusterNo: number;
let otherNo: number;
let scene: Scene;
let look: ReturnType<typeof leavesCluster>;
afterEach(() => scene.close());

async function open(places: readonly Place[], facts: Partial<HostFacts>, hasOther = false): Promise<void> {
  machine = { ...plainHost, gpusEnforced: true, ...facts };
  const other: HostFacts = { ...cluster, cluster: { name: "other", memoryMib: 1, gpuMemoryMib: 1 } };
  const hosts = () => [
    { no: machineNo(), id: "host", facts: machine },
    { no: clusterNo, id: "cluster", facts: cluster },
    ...(hasOther ? [{ no: otherNo, id: "other", facts: other }] : []),
  ];
  const clusters: { no: number; name: string; podClasses: string[] }[] = [];
  scene = await Scene.open({ here: { facts: () => machine, hosts, places, clusters } });
  clusterNo = await scene.stores.hosts.ensure("cluster", scene.clock.now());
  otherNo = await scene.stores.hosts.ensure("other", scene.clock.now());
  clusters.push({ no: clusterNo, name: "default", podClasses: [] });
  if (hasOther) clusters.push({ no: otherNo, name: "other", podClasses: [] });
  scene.run(scene.loops.scale());
  look = leavesCluster(scene.parts);
}
const machineNo = () => scene.parts.here.hostNo;

/** An endpoint with workers of an image, each of which the scaler has given a host. */
async function placed(more: Parameters<Scene["endpoint"]>[0]): Promise<Endpoint> {
  const { id: templateId } = await scene.template({ imageName: "me/worker:1" });
  const endpoint = await scene.endpoint({ templateId, workersMax: more?.workersMin ?? 1, workersMin: 1, ...more });
  await scene.advance(50);
  return endpoint;
}
const hostsOf = (endpoint: Endpoint) =>
  scene.workersOf(endpoint).flatMap(({ row }) => (row.wanted === "running" ? [row.hostNo] : []));
const inCluster = (endpoint: Endpoint): LiveWorker[] =>
  scene.workersOf(endpoint).filter(({ row }) => row.hostNo === clusterNo || row.hostNo === otherNo);

/** What the cluster's tender does, seconds after the cluster has said that it has no room. */
async function tend(endpoint: Endpoint, waitedMs: number = limits.clusterRoomMs, isFull = true): Promise<void> {
  for (const worker of inCluster(endpoint)) {
    worker.unplacedSince ??= scene.clock.now();
    worker.fullSince = isFull ? (worker.fullSince ?? scene.clock.now()) : undefined;
  }
  await scene.advance(waitedMs);
  await look(inCluster(endpoint), scene.clock.now());
  for (const worker of inCluster(endpoint))
    if (worker.row.wanted === "stopped") await endWorker(scene.parts, worker, {}, "it never started");
  await scene.advance(50);
}

it("A worker without a node makes way once a machine has room, and the next one starts there", async () => {
  await open(["machines", "cluster"], { gpus: [] });
  const endpoint = await placed({ gpuTypeIds: ["NVIDIA L4"] });
  expect(hostsOf(endpoint)).toEqual([clusterNo]);
  await tend(endpoint);
  expect(hostsOf(endpoint)).toEqual([clusterNo]);
  machine = { ...machine, gpus: [l4(1)] };
  await tend(endpoint);
  expect(hostsOf(endpoint)).toEqual([machineNo()]);
});

it("It makes way only after a while, and only while it has no node", async () => {
  await open(["machines", "cluster"], { gpus: [] });
  const endpoint = await placed({ gpuTypeIds: ["NVIDIA L4"] });
  machine = { ...machine, gpus: [l4(1)] };
  await tend(endpoint, limits.clusterRoomMs - 1);
  expect(hostsOf(endpoint)).toEqual([clusterNo]);
  await scene.advance(limits.clusterRoomMs);
  for (const worker of inCluster(endpoint)) worker.unplacedSince = undefined;
  await look(inCluster(endpoint), scene.clock.now());
  expect(hostsOf(endpoint)).toEqual([clusterNo]);
});

it("Where the cluster comes first, the next one starts on the machine too", async () => {
  await open(["cluster", "machines"], { gpus: [l4(1)] });
  const endpoint = await placed({ gpuTypeIds: ["NVIDIA L4"] });
  expect(hostsOf(endpoint)).toEqual([clusterNo]);
  await tend(endpoint);
  expect(hostsOf(endpoint)).toEqual([machineNo()]);
});

it("One free place moves one worker", async () => {
  await open(["machines", "cluster"], { gpus: [] });
  const endpoint = await placed({ gpuTypeIds: ["NVIDIA L4"], workersMin: 3 });
  machine = { ...machine, gpus: [l4(1)] };
  for (let turn = 0; turn < 4; turn++) await tend(endpoint);
  expect(hostsOf(endpoint).sort()).toEqual([machineNo(), clusterNo, clusterNo].sort());
  expect([...scene.parts.registry.endedWorkers()]).toHaveLength(1);
});

it.each<[string, Partial<HostFacts>, Parameters<Scene["endpoint"]>[0]]>([
  ["runs no images", { cannotRun: ["image", "directory"], gpusEnforced: false }, { computeType: "CPU", place: null }],
  ["does not enforce GPUs", { gpusEnforced: false }, { gpuTypeIds: ["NVIDIA L4"] }],
  ["is not where the endpoint runs", { gpus: [l4(1)] }, { gpuTypeIds: ["NVIDIA L4"], place: "cluster" }],
])("It stays if the machine %s", async (_, facts, settings) => {
  await open(["machines", "cluster"], facts);
  const endpoint = await placed(settings);
  for (let turn = 0; turn < 3; turn++) await tend(endpoint);
  expect(scene.workersOf(endpoint).map(({ row }) => [row.hostNo, row.wanted])).toEqual([[clusterNo, "running"]]);
});

it("It goes to the next cluster, and its successors follow, until the first is tried again", async () => {
  await open(["machines", "cluster"], { gpus: [] }, true);
  const endpoint = await placed({ gpuTypeIds: ["NVIDIA L4"] });
  expect(hostsOf(endpoint)).toEqual([clusterNo]);
  // an autoscaler has had time to say that it adds a node
  await tend(endpoint, limits.clusterNextMs - 1);
  expect(hostsOf(endpoint)).toEqual([clusterNo]);
  await tend(endpoint, 1);
  expect(hostsOf(endpoint)).toEqual([otherNo]);
  // neither has room: an autoscaler sees a pod that stays
  for (let turn = 0; turn < 5; turn++) await tend(endpoint, limits.clusterNextMs);
  expect(hostsOf(endpoint)).toEqual([otherNo]);
  await scene.advance(limits.clusterLeftMs);
  await tend(endpoint, limits.clusterNextMs);
  expect(hostsOf(endpoint)).toEqual([clusterNo]);
});

it("Where its cluster has no room, the next one is of the endpoint's next size", async () => {
  await open(["machines", "cluster"], { gpus: [] });
  const endpoint = await placed({ computeType: "CPU", instanceIds: ["cpu3g-16-64", "cpu3c-2-4"], place: "cluster" });
  const sizes = () => inCluster(endpoint).flatMap(({ row }) => (row.wanted === "running" ? row.resources?.cpus : []));
  expect(sizes()).toEqual([16]);
  await tend(endpoint, limits.clusterNextMs);
  expect(sizes()).toEqual([2]);
  const [left] = [...scene.parts.registry.endedWorkersOf(endpoint.no)];
  expect(left?.row.why).toBe("its cluster cannot take it now; a worker of 2 vCPU and 4 GB of memory may find room");
  // nor has it room for that: an autoscaler sees a pod that stays
  for (let turn = 0; turn < 3; turn++) await tend(endpoint, limits.clusterNextMs);
  expect(sizes()).toEqual([2]);
});

it("All of an endpoint's workers go there at once, whoever waits for a machine", async () => {
  await open(["machines", "cluster"], { gpus: [] }, true);
  const endpoint = await placed({ gpuTypeIds: ["NVIDIA L4"], workersMin: 3 });
  const waiting = await placed({ gpuTypeIds: ["NVIDIA L4"], place: "machines" });
  expect(hostsOf(endpoint)).toEqual([clusterNo, clusterNo, clusterNo]);
  expect(scene.workersOf(waiting).map(({ row }) => row.placedAt)).toEqual([undefined]);
  await tend(endpoint, limits.clusterNextMs);
  expect(hostsOf(endpoint)).toEqual([otherNo, otherNo, otherNo]);
});

it("It waits where it may yet get a node, from a queue or an autoscaler", async () => {
  await open(["machines", "cluster"], { gpus: [] }, true);
  const endpoint = await placed({ gpuTypeIds: ["NVIDIA L4"] });
  for (let turn = 0; turn < 3; turn++) await tend(endpoint, limits.clusterNextMs, false);
  expect(hostsOf(endpoint)).toEqual([clusterNo]);
});

it("A server that reaches no cluster places the next one like the others", async () => {
  await open(["machines", "cluster"], { gpus: [] }, true);
  (scene.parts.here.clusters as unknown[]).length = 0;
  const endpoint = await placed({ gpuTypeIds: ["NVIDIA L4"] });
  await tend(endpoint, limits.clusterNextMs);
  expect(hostsOf(endpoint)).toEqual([otherNo]);
});

it.each(["names its cluster", "has its network volume there"])(
  "It stays in its cluster if its endpoint %s",
  async (why) => {
    await open(["machines", "cluster"], { gpus: [] }, true);
    const { id } = await createVolume(scene.parts, scene.admin, { name: "models", size: 1, dataCenterId: "here" });
    const stays = why.startsWith("names") ? { place: "cluster/default" as const } : { networkVolumeIds: [id] };
    const endpoint = await placed({ gpuTypeIds: ["NVIDIA L4"], ...stays });
    for (let turn = 0; turn < 3; turn++) await tend(endpoint);
    expect(hostsOf(endpoint)).toEqual([clusterNo]);
    expect([...scene.parts.registry.endedWorkers()]).toEqual([]);
  },
);
