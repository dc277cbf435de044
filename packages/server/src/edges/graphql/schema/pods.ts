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
"What clients of the hosted service send; those that mean nothing here are not looked at."
input PodFindAndDeployOnDemandInput {
  name: String
  imageName: String
  templateId: String
  cloudType: CloudType
  gpuTypeId: String
  gpuTypeIdList: [String!]
  gpuCount: Int
  instanceId: String
  instanceIds: [String!]
  minVcpuCount: Int
  minMemoryInGb: Int
  minDisk: Int
  minDownload: Int
  minUpload: Int
  allowedCudaVersions: [String!]
  cudaVersion: String
  minCudaVersion: String
  countryCode: String
  dataCenterId: String
  dataCenterIds: [String!]
  networkVolumeId: String
  volumeKey: String
  volumeInGb: Int
  volumeMountPath: String
  containerDiskInGb: Int
  containerRegistryAuthId: String
  dockerArgs: String
  dockerEntrypoint: [String!]
  dockerStartCmd: [String!]
  ports: String
  port: Int
  env: [EnvironmentVariableInput!]
  startSsh: Boolean
  startJupyter: Boolean
  startScript: String
  supportPublicIp: Boolean
  globalNetwork: Boolean
  stopAfter: String
  terminateAfter: String
  deployCost: Float
  bidPerGpu: Float
  computeType: String
  aiApiId: String
  clusterId: String
  savingsPlan: PodSavingsPlanInput
}
input PodSavingsPlanInput { planLength: String upfrontCost: Float }
input deployCpuPodInput {
  name: String
  imageName: String
  templateId: String
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
  dockerArgs: String
  ports: String
  env: [EnvironmentVariableInput!]
  startSsh: Boolean
  startJupyter: Boolean
  supportPublicIp: Boolean
  stopAfter: String
  terminateAfter: String
  deployCost: Float
}
input PodStopInput { podId: String! incrementVersion: Boolean }
input PodResumeInput { podId: String! gpuCount: Int syncMachine: Boolean computeType: String }
input PodBidResumeInput { podId: String! bidPerGpu: Float gpuCount: Int }
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
