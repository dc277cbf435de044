import {
  cudaVersions,
  dataCenters,
  type Facts,
  flag,
  gpuTypes,
  list,
  listOf,
  map,
  number,
  type Operation,
  text,
  whole,
  word,
} from "./facts.js";

const ports = ["8888/http", "22/tcp"];
const priority = word(["availability", "custom"]);
const kinds = ["GPU", "CPU"];
const statuses = ["RUNNING", "EXITED", "TERMINATED"];

const container: Facts = {
  containerDiskInGb: whole(50),
  containerRegistryAuthId: text(),
  dockerEntrypoint: list([]),
  dockerStartCmd: list([]),
  env: map({}),
  imageName: text(),
  ports: list(ports),
  volumeInGb: whole(20),
  volumeMountPath: text("/workspace"),
};
const podUpdate: Facts = { ...container, globalNetworking: flag(false), locked: flag(false), name: text("my pod") };
const podCreate: Facts = {
  ...podUpdate,
  allowedCudaVersions: listOf(cudaVersions),
  cloudType: word(["SECURE", "COMMUNITY"], "SECURE"),
  computeType: word(kinds, "GPU"),
  countryCodes: list(),
  cpuFlavorIds: listOf(["cpu3c", "cpu3g", "cpu3m", "cpu5c", "cpu5g", "cpu5m"]),
  cpuFlavorPriority: priority,
  dataCenterIds: listOf(dataCenters),
  dataCenterPriority: priority,
  gpuCount: whole(1, { least: 1 }),
  gpuTypeIds: listOf(gpuTypes),
  gpuTypePriority: priority,
  interruptible: flag(false),
  minDiskBandwidthMBps: number,
  minDownloadMbps: number,
  minRAMPerGPU: whole(),
  minUploadMbps: number,
  minVCPUPerGPU: whole(),
  networkVolumeId: text(),
  supportPublicIp: flag(),
  templateId: text(),
  vcpuCount: whole(2),
};
const endpointUpdate: Facts = {
  allowedCudaVersions: listOf(cudaVersions),
  cpuFlavorIds: listOf(["cpu3c", "cpu3g", "cpu5c", "cpu5g"]),
  dataCenterIds: listOf(dataCenters),
  executionTimeoutMs: whole(),
  flashboot: flag(),
  gpuCount: whole(1, { least: 1 }),
  gpuTypeIds: listOf(gpuTypes),
  idleTimeout: whole(5, { least: 1, most: 3_600 }),
  minCudaVersion: word(cudaVersions),
  name: text(),
  networkVolumeId: text(),
  networkVolumeIds: list(),
  scalerType: word(["QUEUE_DELAY", "REQUEST_COUNT"], "QUEUE_DELAY"),
  scalerValue: whole(4, { least: 1 }),
  templateId: text(),
  vcpuCount: whole(),
  workersMax: whole(undefined, { least: 0 }),
  workersMin: whole(undefined, { least: 0 }),
};
const templateUpdate: Facts = { ...container, isPublic: flag(false), name: text(), readme: text("") };
const volumeUpdate: Facts = { name: text(), size: whole(undefined, { least: 0, most: 4_000 }) };

const template: Facts = {
  ...Object.fromEntries(Object.entries(container).map(([name, { is }]) => [name, { is }])),
  category: text(),
  earned: number,
  id: text(),
  isPublic: flag(),
  isRunpod: flag(),
  isServerless: flag(),
  name: text(),
  readme: text(),
  runtimeInMin: whole(),
};
const endpoint: Facts = {
  allowedCudaVersions: list(),
  computeType: word(kinds),
  createdAt: text(),
  dataCenterIds: list(),
  env: map(),
  executionTimeoutMs: whole(),
  gpuCount: whole(),
  gpuTypeIds: list(),
  id: text(),
  idleTimeout: whole(),
  instanceIds: list(),
  minCudaVersion: text(),
  name: text(),
  networkVolumeId: text(),
  networkVolumeIds: list(),
  scalerType: word(["QUEUE_DELAY", "REQUEST_COUNT"]),
  scalerValue: whole(),
  templateId: text(),
  userId: text(),
  version: whole(),
  workersMax: whole(),
  workersMin: whole(),
};
const pod: Facts = {
  adjustedCostPerHr: number,
  consumerUserId: text(),
  containerDiskInGb: whole(),
  costPerHr: number,
  desiredStatus: word(statuses),
  dockerEntrypoint: list(),
  dockerStartCmd: list(),
  env: map(),
  gpu: map(),
  id: text(),
  image: text(),
  interruptible: flag(),
  lastStatusChange: text(),
  locked: flag(),
  memoryInGb: number,
  name: text(),
  ports: list(),
  templateId: text(),
  vcpuCount: number,
  volumeEncrypted: flag(),
  volumeInGb: whole(),
  volumeMountPath: text(),
};
const volume: Facts = { dataCenterId: text(), id: text(), name: text(), size: whole() };
const auth: Facts = { id: text(), name: text() };

const includes = (...names: readonly string[]): Facts => Object.fromEntries(names.map((name) => [name, flag(false)]));
const ofEndpoints = includes("includeTemplate", "includeWorkers");
const ofPods = includes(
  ...["includeMachine", "includeNetworkVolume", "includeSavingsPlans", "includeTemplate", "includeWorkers"],
);
const ofTemplates = includes("includeEndpointBoundTemplates", "includePublicTemplates", "includeRunpodTemplates");
const period: Facts = {
  bucketSize: word(["hour", "day", "week", "month", "year"], "day"),
  startTime: text(),
  endTime: text(),
};
const filters: Facts = {
  computeType: word(kinds),
  cpuFlavorId: text(),
  dataCenterId: text(),
  desiredStatus: word(statuses),
  endpointId: text(),
  gpuTypeId: text(),
  id: text(),
  imageName: text(),
  name: text(),
  networkVolumeId: text(),
  templateId: text(),
};

/** The operations of one kind of resource. */
function resource(
  path: string,
  id: string,
  facts: { create: Facts; required: readonly string[]; update?: Facts; reply: Facts; query?: Facts; status?: number },
): Operation[] {
  const { create, required, update, reply, query = {}, status = 200 } = facts;
  const one = `${path}/{${id}}`;
  const changes: Operation[] = update
    ? [
        { method: "PATCH", path: one, status: 200, body: update, reply },
        { method: "POST", path: `${one}/update`, status: 200, body: update, reply },
      ]
    : [];
  return [
    { method: "POST", path, status, body: create, required, reply },
    { method: "GET", path, status: 200, query, reply, isList: true },
    { method: "GET", path: one, status: 200, query: path === "/pods" ? ofPods : query, reply },
    ...changes,
    { method: "DELETE", path: one, status: 204 },
  ];
}

/** Every operation of the public description of REST v1, but for the description itself and its page. */
export const v1: readonly Operation[] = [
  ...resource("/endpoints", "endpointId", {
    create: { ...endpointUpdate, computeType: word(kinds, "GPU") },
    required: ["templateId"],
    update: endpointUpdate,
    reply: endpoint,
    query: ofEndpoints,
  }),
  ...resource("/templates", "templateId", {
    create: { ...templateUpdate, category: word(["NVIDIA", "AMD", "CPU"], "NVIDIA"), isServerless: flag(false) },
    required: ["name", "imageName"],
    update: templateUpdate,
    reply: template,
    query: ofTemplates,
  }),
  ...resource("/networkvolumes", "networkVolumeId", {
    create: { ...volumeUpdate, dataCenterId: text() },
    required: ["name", "size", "dataCenterId"],
    update: volumeUpdate,
    reply: volume,
  }),
  ...resource("/containerregistryauth", "containerRegistryAuthId", {
    create: { name: text(), username: text(), password: text() },
    required: ["name", "username", "password"],
    reply: auth,
  }),
  ...resource("/pods", "podId", {
    create: podCreate,
    required: [],
    update: podUpdate,
    reply: pod,
    query: { ...ofPods, ...filters },
    status: 201,
  }),
  ...["stop", "start", "reset", "restart"].map(
    (action): Operation => ({ method: "POST", path: `/pods/{podId}/${action}`, status: 200 }),
  ),
  {
    method: "GET",
    path: "/billing/pods",
    status: 200,
    query: { ...period, gpuTypeId: word(gpuTypes), grouping: word(["podId", "gpuTypeId"], "gpuTypeId"), podId: text() },
  },
  {
    method: "GET",
    path: "/billing/endpoints",
    status: 200,
    query: {
      ...period,
      dataCenterId: word(dataCenters),
      endpointId: text(),
      gpuTypeId: word(gpuTypes),
      grouping: word(["endpointId", "podId", "gpuTypeId"], "endpointId"),
      imageName: text(),
      templateId: text(),
    },
  },
  { method: "GET", path: "/billing/networkvolumes", status: 200, query: period },
];
