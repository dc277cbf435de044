/** Pods, and workers where endpoints list them as pods. */
export const podTypes = `
input PodFilter { podId: String }
type PodRuntimePort { ip: String isIpPublic: Boolean privatePort: Int publicPort: Int type: String }
type PodRuntimeContainer { cpuPercent: Float memoryPercent: Float }
type PodRuntimeGpu { id: String gpuUtilPercent: Float memoryUtilPercent: Float }
type PodRuntime {
  ports: [PodRuntimePort!]
  uptimeInSeconds: Int
  container: PodRuntimeContainer
  gpus: [PodRuntimeGpu!]
}
type PodMachineGpuType { id: String displayName: String memoryInGb: Int }
type PodMachine {
  gpuDisplayName: String
  gpuTypeId: String
  gpuType: PodMachineGpuType
  location: String
  dataCenterId: String
  podHostId: String
  cpuCount: Int
  "Null, like all that follow: the hosted service alone knows such things."
  currentPricePerGpu: Float
  diskMBps: Int
  gpuAvailable: Int
  maintenanceNote: String
  maxDownloadSpeedMbps: Int
  maxUploadSpeedMbps: Int
  note: String
  supportPublicIp: Boolean
  minPodGpuCount: Int
}
type PodTelemetryGpu {
  percentUtilization: Float
  memoryUtilization: Float
  temperatureCelcius: Float
  powerWatts: Float
}
type PodTelemetry {
  time: String
  state: String
  cpuUtilization: Float
  memoryUtilization: Float
  averageGpuMetrics: PodTelemetryGpu
  individualGpuMetrics: [PodTelemetryGpu!]
}
type PodCpuFlavor { groupName: String displayName: String }
type PodIpAddress { address: String }
enum CloudType { ALL SECURE COMMUNITY }
input PodFindAndDeployOnDemandInput {
  name: String
  imageName: String
  templateId: String
  "Kept and shown; it changes nothing here."
  cloudType: CloudType
  gpuTypeId: String
  gpuTypeIdList: [String!]
  gpuCount: Int
  "A CPU instance, such as cpu3c-2-4: the pod then runs on CPUs."
  instanceId: String
  instanceIds: [String!]
  "vCPUs that the machine of a GPU pod must have; the pod may use them all."
  minVcpuCount: Int
  "GB of memory that the machine of a GPU pod must have; the pod may use them all."
  minMemoryInGb: Int
  "CUDA versions: the oldest must be supported by the GPUs' driver."
  allowedCudaVersions: [String!]
  "The same as minCudaVersion."
  cudaVersion: String
  minCudaVersion: String
  countryCode: String
  dataCenterId: String
  dataCenterIds: [String!]
  networkVolumeId: String
  volumeInGb: Int
  volumeMountPath: String
  containerDiskInGb: Int
  containerRegistryAuthId: String
  "The start command, split as a shell would."
  dockerArgs: String
  dockerEntrypoint: [String!]
  dockerStartCmd: [String!]
  "Ports as number/protocol, comma-separated."
  ports: String
  env: [EnvironmentVariableInput!]
  "Must be empty: a start script is not run here."
  startScript: String
  "Kept and shown; it changes nothing here."
  supportPublicIp: Boolean
  "Kept and shown; it changes nothing here."
  globalNetwork: Boolean
  stopAfter: String
  terminateAfter: String
  computeType: String
  "Ignored, like all that follow: hosts do not tell it, or it means something at the hosted service alone."
  minDisk: Int @ignored
  minDownload: Int @ignored
  minUpload: Int @ignored
  volumeKey: String @ignored
  port: Int @ignored
  startSsh: Boolean @ignored
  startJupyter: Boolean @ignored
  deployCost: Float @ignored
  bidPerGpu: Float @ignored
  aiApiId: String @ignored
  clusterId: String @ignored
  savingsPlan: PodSavingsPlanInput @ignored
}
input PodSavingsPlanInput { planLength: String upfrontCost: Float }
input deployCpuPodInput {
  name: String
  imageName: String
  templateId: String
  "Kept and shown; it changes nothing here."
  cloudType: CloudType
  instanceId: String
  instanceIds: [String!]
  countryCode: String
  dataCenterId: String
  dataCenterIds: [String!]
  networkVolumeId: String
  volumeInGb: Int
  volumeMountPath: String
  containerDiskInGb: Int
  containerRegistryAuthId: String
  "The start command, split as a shell would."
  dockerArgs: String
  ports: String
  env: [EnvironmentVariableInput!]
  "Kept and shown; it changes nothing here."
  supportPublicIp: Boolean
  stopAfter: String
  terminateAfter: String
  "Ignored, like all that follow: it means something at the hosted service alone."
  startSsh: Boolean @ignored
  startJupyter: Boolean @ignored
  deployCost: Float @ignored
}
input PodStopInput { podId: String! "Ignored: a pod's version says how often it was changed." incrementVersion: Boolean @ignored }
input PodResumeInput {
  podId: String!
  gpuCount: Int
  "Ignored, like all that follow: a pod keeps its kind, and its volume its place."
  syncMachine: Boolean @ignored
  computeType: String @ignored
}
input PodBidResumeInput { podId: String! gpuCount: Int "Ignored: nothing here is let to the highest bidder." bidPerGpu: Float @ignored }
input PodTerminateInput { podId: String! }
type Pod {
  id: String
  name: String
  imageName: String
  desiredStatus: String
  lastStatusChange: String
  uptimeSeconds: Int
  costPerHr: Float
  containerDiskInGb: Int
  volumeInGb: Int
  volumeMountPath: String
  memoryInGb: Int
  vcpuCount: Int
  gpuCount: Int
  dockerArgs: String
  dockerId: String
  env: [String!]
  machineId: String
  podType: String
  port: Int
  ports: String
  templateId: String
  lastStartedAt: String
  runtime: PodRuntime
  machine: PodMachine
  createdAt: String
  networkVolume: NetworkVolume
  networkVolumeId: String
  containerRegistryAuthId: String
  interruptible: Boolean
  locked: Boolean
  adjustedCostPerHr: Float
  cpuFlavorId: String
  cpuFlavor: PodCpuFlavor
  consumerUserId: String
  ipAddress: PodIpAddress
  "Why it does not run."
  statusDetail: String
  volumeEncrypted: Boolean
  slsVersion: Int
  "Null, like all that follow: nothing here measures or has it."
  latestTelemetry: PodTelemetry
  clusterId: String
  machineType: String
  savingsPlans: [String!]
  lowestBidPriceToResume: Float
  aiApiId: String
  costMultiplier: Float
  volumeKey: String
  gpuPowerLimitPercent: Int
}
`;
