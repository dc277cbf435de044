import {
  dataCenters,
  type Facts,
  flag,
  list,
  listOf,
  map,
  number,
  type Operation,
  text,
  whole,
  word,
} from "./facts.js";

const volumeTypes = ["STANDARD", "HIGH_PERFORMANCE"];
const regions = [
  ...["NORTH_AMERICA", "SOUTH_AMERICA", "EUROPE", "ASIA", "MIDDLE_EAST", "AFRICA", "OCEANIA", "ANTARCTICA", "UNKNOWN"],
];
const compliance = [
  ...["GDPR", "ISO_IEC_27001", "ISO_14001", "PCI_DSS", "HITRUST", "SOC_1_TYPE_2", "SOC_2_TYPE_2", "SOC_3_TYPE_2"],
  ...["ITAR", "FISMA_HIGH", "HIPAA", "RENEWABLE"],
];
const statuses = ["PROVISIONING", "STARTING", "RUNNING", "EXITED", "ERROR", "TERMINATED"];
const categories = ["CPU", "NVIDIA", "AMD"];

const container: Facts = {
  image: text(),
  args: text(),
  disk: whole(undefined, { least: 1 }),
  ports: list(),
  env: map(),
  registry: text(),
};
const pools = ["AMPERE_16", "AMPERE_24", "ADA_24", "AMPERE_48", "ADA_48_PRO", "AMPERE_80", "ADA_80_PRO"];
const endpointUpdate: Facts = {
  ...container,
  name: text(),
  gpu: map(),
  "gpu.pools": listOf(pools),
  "gpu.count": whole(1, { least: 1 }),
  workers: map(),
  "workers.min": whole(undefined, { least: 0 }),
  "workers.max": whole(undefined, { least: 0 }),
  "workers.idleTimeout": whole(undefined, { least: 1, most: 3_600 }),
  scaling: map(),
  dataCenterIds: listOf(dataCenters),
  networkVolumes: list(),
  timeout: whole(),
  flashboot: word(["OFF", "FLASHBOOT", "PRIORITY_FLASHBOOT"]),
};
const endpointCreate: Facts = {
  ...endpointUpdate,
  type: word(["QUEUE", "LOAD_BALANCER"]),
  timeout: whole(300_000),
  flashboot: word(["OFF", "FLASHBOOT", "PRIORITY_FLASHBOOT"], "OFF"),
};
const podUpdate: Facts = { ...container, name: text(), mounts: map(), locked: flag(), globalNetworking: flag() };
const podCreate: Facts = {
  ...container,
  name: text(),
  mounts: map(),
  gpu: map(),
  "gpu.id": text(),
  "gpu.count": whole(1, { least: 1 }),
  cloud: word(["SECURE", "COMMUNITY"], "SECURE"),
  dataCenterIds: listOf(dataCenters),
  globalNetworking: flag(),
};
const templateUpdate: Facts = {
  ...container,
  name: text(),
  mounts: map(),
  serverless: flag(),
  public: flag(),
  category: word(categories),
};
const templateCreate: Facts = {
  ...templateUpdate,
  serverless: flag(false),
  public: flag(false),
  category: word(categories, "NVIDIA"),
};
const volumeUpdate: Facts = { name: text(), size: whole(undefined, { least: 10, most: 4_096 }) };

const made: Facts = { id: text(), name: text() };
const shownContainer: Facts = {
  image: text(),
  args: text(),
  disk: whole(),
  ports: list(),
  env: map(),
  registry: text(),
};
const endpoint: Facts = {
  ...made,
  ...shownContainer,
  type: word(["QUEUE", "LOAD_BALANCER"]),
  requestUrls: map(),
  gpu: map(),
  cpu: map(),
  workers: map(),
  scaling: map(),
  dataCenterIds: list(),
  networkVolumes: list(),
  timeout: whole(),
  flashboot: word(["OFF", "FLASHBOOT", "PRIORITY_FLASHBOOT"]),
  createdAt: text(),
};
const pod: Facts = {
  ...made,
  ...shownContainer,
  status: word(statuses),
  actions: list(),
  mounts: map(),
  gpu: map(),
  cloud: word(["SECURE", "COMMUNITY"]),
  dataCenterId: text(),
  template: text(),
  cost: number,
  locked: flag(),
  globalNetworking: map(),
  runtime: map(),
  createdAt: text(),
  startedAt: text(),
};
const template: Facts = {
  ...made,
  ...shownContainer,
  mounts: map(),
  serverless: flag(),
  public: flag(),
  category: word(categories),
};
const volume: Facts = { ...made, size: whole(), dataCenter: text(), type: word(volumeTypes) };
const gpu: Facts = {
  ...made,
  pool: text(),
  manufacturer: word(["NVIDIA", "AMD", "UNKNOWN"]),
  memory: whole(),
  secure: flag(),
  community: flag(),
  price: map(),
  maxCount: map(),
};
const cpu: Facts = { ...made, group: text(), vcpu: map(), ramGbPerVcpu: number, price: map() };
const dataCenter: Facts = {
  ...made,
  region: word(regions),
  globalNetwork: flag(),
  networkVolumeTypes: list(),
  compliance: list(),
};

const period: Facts = {
  startTime: text(),
  endTime: text(),
  bucketSize: word(["hour", "day", "week", "month", "year"]),
  lastN: whole(),
};
const gpuQuery: Facts = {
  include: word(["AVAILABILITY"]),
  product: word(["POD", "CLUSTER", "SERVERLESS"]),
  count: whole(),
  cloud: word(["SECURE", "COMMUNITY"]),
  minCudaVersion: text(),
};
const cpuQuery: Facts = { include: word(["AVAILABILITY"]), product: word(["POD", "SERVERLESS"]), vcpuCount: whole() };
const placeQuery: Facts = { include: word(["GPU_AVAILABILITY", "CPU_AVAILABILITY"]) };

function resource(
  path: string,
  envelope: string,
  facts: { create: Facts; required: readonly string[]; update?: Facts; reply: Facts },
): Operation[] {
  const { create, required, update, reply } = facts;
  const one = `${path}/{id}`;
  return [
    { method: "POST", path, status: 201, body: create, required, reply },
    { method: "GET", path, status: 200, reply, envelope },
    { method: "GET", path: one, status: 200, reply },
    ...(update ? [{ method: "PATCH", path: one, status: 200, body: update, reply } as const] : []),
    { method: "DELETE", path: one, status: 204 },
  ];
}

const read = (path: string, more: Partial<Operation> = {}): Operation => ({
  method: "GET",
  path,
  status: 200,
  ...more,
});

/** Every operation of the public description of REST v2, but for logs, which go on, and delegations, which cannot be made. */
export const v2: readonly Operation[] = [
  ...resource("/serverless", "endpoints", {
    create: endpointCreate,
    required: ["name", "image", "type", "scaling"],
    update: endpointUpdate,
    reply: endpoint,
  }),
  read("/serverless/{id}/workers", { reply: { workers: list(), summary: map(), endpointVersion: whole() } }),
  read("/serverless/{id}/releases", { reply: { rollout: map(), releases: list(), endpointVersion: whole() } }),
  ...resource("/pods", "pods", { create: podCreate, required: ["name", "image"], update: podUpdate, reply: pod }),
  {
    method: "POST",
    path: "/pods/{id}/action",
    status: 200,
    body: { action: word(["stop", "start", "restart"]) },
    required: ["action"],
    reply: pod,
  },
  ...resource("/templates", "templates", {
    create: templateCreate,
    required: ["name", "image"],
    update: templateUpdate,
    reply: template,
  }),
  ...resource("/network-volumes", "networkVolumes", {
    create: { ...volumeUpdate, dataCenter: text(), type: word(["STANDARD"]) },
    required: ["name", "size", "dataCenter"],
    update: volumeUpdate,
    reply: volume,
  }),
  ...resource("/registries", "registries", {
    create: { name: text(), username: text(), password: text() },
    required: ["name", "username", "password"],
    reply: made,
  }),
  read("/registries/delegations", { reply: { delegations: list() } }),
  read("/catalog/gpus", { reply: gpu, envelope: "gpus", query: gpuQuery }),
  read("/catalog/gpus/{id}", { reply: gpu, query: gpuQuery }),
  read("/catalog/cpus", { reply: cpu, envelope: "cpus", query: cpuQuery }),
  read("/catalog/cpus/{id}", { reply: cpu, query: cpuQuery }),
  read("/catalog/datacenters", {
    reply: dataCenter,
    envelope: "dataCenters",
    query: {
      ...placeQuery,
      regions: word(regions),
      networkVolumeTypes: word(volumeTypes),
      compliance: word(compliance),
      globalNetwork: flag(),
    },
  }),
  read("/catalog/datacenters/{id}", { reply: dataCenter, query: placeQuery }),
  read("/billing", { reply: { records: list(), metadata: map() }, query: period }),
  ...Object.entries({
    pods: "podId",
    serverless: "serverlessId",
    networkvolumes: "networkVolumeId",
    clusters: "clusterId",
  }).map(([of, id]) =>
    read(`/billing/${of}`, { reply: { records: list(), metadata: map() }, query: { ...period, [id]: text() } }),
  ),
  read("/billing/endpoints", { reply: { records: list(), metadata: map() }, query: period }),
];
