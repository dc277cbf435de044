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
type PodMachine { gpuDisplayName: String location: String podHostId: String }
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
}
`;
