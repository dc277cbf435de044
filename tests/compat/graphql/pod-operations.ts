import { type Arguments, type Made, type Operation, Word } from "./operation.js";
import {
  each,
  empty,
  flag,
  int,
  list,
  listOrNone,
  nothing,
  nullOnly,
  number,
  object,
  orNull,
  text,
  texts,
} from "./shape.js";

const machineNulls =
  "currentPricePerGpu diskMBps gpuAvailable maintenanceNote maxDownloadSpeedMbps maxUploadSpeedMbps note supportPublicIp minPodGpuCount";
const machine = object({
  ...texts("podHostId"),
  ...each("gpuDisplayName gpuTypeId location dataCenterId", orNull(text)),
  cpuCount: int,
});
const gpuMetrics = object(each("percentUtilization memoryUtilization temperatureCelcius powerWatts", number));
const port = object({ ...each("ip type", orNull(text)), isIpPublic: flag, ...each("privatePort publicPort", int) });

/** What Python and runpodctl select of pods. */
const listed = {
  ...texts("id desiredStatus dockerArgs imageName lastStatusChange name podType ports volumeMountPath"),
  ...each("containerDiskInGb gpuCount memoryInGb uptimeSeconds vcpuCount volumeInGb", int),
  costPerHr: number,
  ...each("dockerId machineId", orNull(text)),
  port: orNull(int),
  env: listOrNone(text),
  machine: orNull(machine),
  runtime: orNull(object({ ports: listOrNone(port) })),
};
/** What strangers' clients select beyond that. */
const more = {
  ...each("createdAt consumerUserId", text),
  ...each("templateId lastStartedAt networkVolumeId containerRegistryAuthId cpuFlavorId statusDetail", orNull(text)),
  ...each("interruptible locked volumeEncrypted", flag),
  adjustedCostPerHr: number,
  slsVersion: int,
  ...each(
    "clusterId machineType lowestBidPriceToResume aiApiId costMultiplier volumeKey gpuPowerLimitPercent",
    nullOnly,
  ),
  cpuFlavor: orNull(object(texts("groupName displayName"))),
  ipAddress: orNull(object(texts("address"))),
  networkVolume: orNull(object(texts("id name"))),
  savingsPlans: empty(text),
  latestTelemetry: nothing(
    object({
      ...texts("time state"),
      ...each("cpuUtilization memoryUtilization", number),
      averageGpuMetrics: gpuMetrics,
      individualGpuMetrics: list(gpuMetrics),
    }),
  ),
};
/** What runs, with what is known of its machine. */
const running = object({
  ...listed,
  ...more,
  machineId: text,
  lastStartedAt: text,
  env: list(text),
  machine: object({
    podHostId: text,
    cpuCount: int,
    ...each(machineNulls, nullOnly),
    gpuType: orNull(object({ ...texts("id displayName"), memoryInGb: orNull(int) })),
  }),
  runtime: object({
    ports: listOrNone(port),
    uptimeInSeconds: int,
    container: orNull(object(each("cpuPercent memoryPercent", number))),
    gpus: listOrNone(object({ id: text, ...each("gpuUtilPercent memoryUtilPercent", number) })),
  }),
});
const deployed = object({
  ...texts("id imageName desiredStatus lastStatusChange"),
  env: listOrNone(text),
  costPerHr: number,
  machineId: orNull(text),
  machine: orNull(object(texts("podHostId"))),
});

const image = { imageName: "registry.example/image", env: [{ key: "A", value: "1" }], ports: "8888/http,22/tcp" };
const disks = { volumeInGb: 1, containerDiskInGb: 5, volumeMountPath: "/workspace" };
const flags = { startSsh: true, startJupyter: false, supportPublicIp: true };
const onDemand = (input: object) => (): Arguments => ({ input: ["PodFindAndDeployOnDemandInput!", input] });
const one =
  (key: keyof Made, type: string, rest: object = {}) =>
  (made: Made): Arguments => ({
    input: [type, { podId: made[key], ...rest }],
  });

/** Pods. */
export const podOperations: readonly Operation[] = [
  { by: "Python", root: "query", field: "myself", isLiteral: true, gives: object({ pods: list(object(listed)) }) },
  {
    by: "Python",
    root: "query",
    field: "pod",
    isLiteral: true,
    args: (made) => ({ input: ["PodFilter", { podId: made.pod }] }),
    gives: running,
  },
  {
    by: "strangers' clients",
    root: "query",
    field: "pod",
    args: (made) => ({ input: ["PodFilter", { podId: made.pod }] }),
    holds: () => ({ dockerArgs: "sleep 600", env: ["A=1"], ports: "8888/http", machine: { gpuType: null } }),
    gives: running,
  },
  {
    by: "runpodctl: for SSH",
    root: "query",
    field: "myself",
    within: (made) => ({ filter: ["PodFilter", { podId: made.pod }] }),
    gives: object({ "pods(input: $filter)": list(object({ ...listed, ...more })) }),
  },
  {
    by: "Python",
    root: "mutation",
    field: "podFindAndDeployOnDemand",
    isLiteral: true,
    args: onDemand({
      ...image,
      ...disks,
      ...flags,
      name: "python",
      gpuTypeId: "NVIDIA L4",
      cloudType: new Word("ALL"),
      dataCenterId: null,
      gpuCount: 1,
      minVcpuCount: 1,
      minMemoryInGb: 1,
      dockerArgs: "",
    }),
    gives: deployed,
  },
  {
    by: "runpodctl: with every field",
    root: "mutation",
    field: "podFindAndDeployOnDemand",
    args: (made) => ({
      input: [
        "PodFindAndDeployOnDemandInput!",
        {
          ...image,
          ...disks,
          ...flags,
          name: "ctl",
          templateId: made.template,
          cloudType: "SECURE",
          gpuTypeIdList: ["NVIDIA L4", "NVIDIA A40"],
          gpuCount: 1,
          minVcpuCount: 1,
          minMemoryInGb: 1,
          minDisk: 0,
          minDownload: 0,
          minUpload: 0,
          allowedCudaVersions: ["12.4"],
          minCudaVersion: "12.4",
          countryCode: "",
          dataCenterIds: ["EU-RO-1"],
          networkVolumeId: "",
          volumeKey: "",
          containerRegistryAuthId: "",
          dockerEntrypoint: [],
          dockerStartCmd: [],
          startScript: "",
          globalNetwork: false,
          stopAfter: "",
          terminateAfter: "",
          deployCost: 0.5,
          bidPerGpu: 0,
          computeType: "GPU",
          aiApiId: "",
          port: 0,
          cudaVersion: "",
          clusterId: "",
          savingsPlan: { planLength: "", upfrontCost: 0 },
        },
      ],
    }),
    gives: object({ ...listed, ...more }),
  },
  {
    by: "others: the same as an on-demand pod",
    root: "mutation",
    field: "podRentInterruptable",
    args: onDemand({ ...image, ...disks, name: "bid", gpuTypeId: "NVIDIA L4", gpuCount: 1, bidPerGpu: 0.2 }),
    gives: deployed,
  },
  {
    by: "Python",
    root: "mutation",
    field: "deployCpuPod",
    isLiteral: true,
    args: () => ({
      input: [
        "deployCpuPodInput",
        { ...image, ...flags, name: "cpu", instanceId: "cpu3c-1-2", cloudType: new Word("ALL"), containerDiskInGb: 5 },
      ],
    }),
    gives: deployed,
  },
  {
    by: "runpodctl: with an instance",
    root: "mutation",
    field: "podFindAndDeployOnDemand",
    args: onDemand({ ...image, name: "instance", instanceId: "cpu3c-1-2", instanceIds: null, containerDiskInGb: 5 }),
    gives: deployed,
  },
  {
    by: "others: with every field",
    root: "mutation",
    field: "deployCpuPod",
    args: (made) => ({
      input: [
        "deployCpuPodInput",
        {
          ...image,
          ...disks,
          ...flags,
          name: "cpu",
          templateId: made.template,
          cloudType: "SECURE",
          instanceIds: ["cpu3g-1-4"],
          countryCode: "RO",
          dataCenterId: "EU-RO-1",
          dataCenterIds: null,
          networkVolumeId: "",
          containerRegistryAuthId: "",
          dockerArgs: "sleep 60",
          stopAfter: "",
          terminateAfter: "",
          deployCost: 0.1,
        },
      ],
    }),
    holds: () => ({ cpuFlavor: { groupName: "General Purpose", displayName: "cpu3g" }, dockerArgs: "sleep 60" }),
    gives: object({ ...listed, ...more }),
  },
  {
    by: "Python",
    root: "mutation",
    field: "podStop",
    isLiteral: true,
    args: one("podToStop", "PodStopInput!"),
    gives: object(texts("id desiredStatus")),
  },
  {
    by: "runpodctl",
    root: "mutation",
    field: "podStop",
    args: one("podToResume", "PodStopInput!", { incrementVersion: false }),
    gives: object({ ...texts("id desiredStatus lastStatusChange") }),
  },
  {
    by: "Python: with GPUs",
    root: "mutation",
    field: "podResume",
    isLiteral: true,
    args: one("podToStop", "PodResumeInput!", { gpuCount: 1 }),
    gives: deployed,
  },
  {
    by: "runpodctl: as it was",
    root: "mutation",
    field: "podResume",
    args: one("podToResume", "PodResumeInput!", { syncMachine: false, computeType: "GPU" }),
    gives: deployed,
  },
  {
    by: "runpodctl",
    root: "mutation",
    field: "podBidResume",
    args: one("podToBid", "PodBidResumeInput!", { bidPerGpu: 0.2, gpuCount: 1 }),
    gives: deployed,
  },
  {
    by: "Python, runpodctl",
    root: "mutation",
    field: "podTerminate",
    args: one("podToEnd", "PodTerminateInput!"),
    gives: nullOnly,
  },
];
