/** Endpoints, templates and what belongs to them. */
export const endpointTypes = `
enum FlashBootType { OFF FLASHBOOT PRIORITY_FLASHBOOT }
scalar JSON

"One environment variable."
input EnvironmentVariableInput { key: String! value: String! }
type EnvironmentVariable { key: String! value: String! }

input EndpointVolumeIdInput { networkVolumeId: String! "Ignored: a volume knows it." dataCenterId: String @ignored }
input EndpointVolumeInput {
  volumeId: String
  "Ignored, like all that follow: the template says where volumes are mounted."
  volumeType: String @ignored
  mountPath: String @ignored
}

"What an endpoint's workers are made of, as a template of its own, which is deleted with it."
input EndpointTemplateInput {
  name: String
  imageName: String
  "The start command, split as a shell would."
  dockerArgs: String
  containerDiskInGb: Int
  containerRegistryAuthId: String
  env: [EnvironmentVariableInput!]
  ports: String
  readme: String
  volumeInGb: Int
  volumeMountPath: String
  "Must be empty: a start script is not run here."
  startScript: String
  "Ignored, like all that follow: they mean something at the hosted service alone."
  advancedStart: Boolean @ignored
  config: JSON @ignored
}

"An endpoint to create or, if an id is given, to modify. On modify, only the fields sent change."
input EndpointInput {
  id: String
  "Endpoint name."
  name: String
  "Serverless template identifier."
  templateId: String
  "Instead of templateId: a template of its own."
  template: EndpointTemplateInput
  "GPU tiers and types, comma-separated, in order of preference; -NVIDIA L4 takes one out of its tier."
  gpuIds: String
  gpuCount: Int
  "CPU instances, such as cpu3g-2-8: the endpoint then runs on CPUs."
  instanceIds: [String!]
  computeType: String
  "QB: queue-based. LB: load-balancing."
  type: String
  "Seconds before idle workers shut down."
  idleTimeout: Int
  "Country codes or data centres, comma-separated; empty is any."
  locations: String
  flashBootType: FlashBootType
  "QUEUE_DELAY or REQUEST_COUNT; endpoints of both types may use either."
  scalerType: String
  "Seconds of delay, or requests for each worker: a whole number."
  scalerValue: Float
  "Workers kept at all times; 0 is scale to zero."
  workersMin: Int
  "The most workers at a time."
  workersMax: Int
  networkVolumeId: String
  networkVolumeIds: [EndpointVolumeIdInput!]
  volumes: [EndpointVolumeInput!]
  executionTimeoutMs: Int
  "CUDA versions, comma-separated."
  allowedCudaVersions: String
  minCudaVersion: String
  "Where its workers run: machines, cluster, or cluster/name; by default as the server is set."
  place: String
  "The pod class of its workers in a cluster, as the operator has set it up."
  podClass: String
  env: [EnvironmentVariableInput!]
  "Ignored, like all that follow: they mean something at the hosted service alone."
  workersPFBTarget: Int @ignored
  flashEnvironmentId: String @ignored
  hubReleaseId: String @ignored
  hubRelease: String @ignored
  repo: String @ignored
  compliance: [String!] @ignored
  modelReferences: [String!] @ignored
  aiKey: String @ignored
  userId: String @ignored
  activeBuildid: String @ignored
  createdAt: String @ignored
}

input PortConfigInput { port: String! name: String! }

input SaveTemplateInput {
  id: String
  name: String
  imageName: String
  "The start command, split as a shell would."
  dockerArgs: String
  containerDiskInGb: Int
  volumeInGb: Int
  volumeMountPath: String
  "Ports as number/protocol, comma-separated."
  ports: String
  env: [EnvironmentVariableInput!]
  isServerless: Boolean
  isPublic: Boolean
  "Must be empty: a start script is not run here."
  startScript: String
  readme: String
  category: String
  containerRegistryAuthId: String
  "Ignored: 'ports' counts, and ports have no names here."
  portsConfig: [PortConfigInput!] @ignored
  "Ignored, like all that follow: an image starts what it brings."
  startSsh: Boolean @ignored
  startJupyter: Boolean @ignored
  advancedStart: Boolean @ignored
}

"Credentials of a container registry; they are never shown."
input SaveRegistryAuthInput { name: String! username: String! password: String! }
input UpdateRegistryAuthInput { id: String! username: String! password: String! }
type ContainerRegistryAuth { id: String name: String }

input UpdateEndpointTemplateInput { endpointId: String! templateId: String! }

type NetworkVolume { id: String name: String size: Int dataCenterId: String }
type EndpointNetworkVolume { networkVolumeId: String dataCenterId: String }

type Endpoint {
  id: String
  aiKey: String
  name: String
  userId: String
  templateId: String
  template: Template
  version: Int
  createdAt: String
  type: String
  computeType: String
  gpuIds: String
  gpuCount: Int
  instanceIds: [String!]
  idleTimeout: Int
  locations: String
  flashBootType: FlashBootType
  scalerType: String
  scalerValue: Int
  workersMin: Int
  workersMax: Int
  workersStandby: Int
  executionTimeoutMs: Int
  allowedCudaVersions: String
  minCudaVersion: String
  place: String
  podClass: String
  networkVolumeId: String
  networkVolumeIds: [EndpointNetworkVolume!]
  networkVolume: NetworkVolume
  env: [EnvironmentVariable]
  pods: [Pod]
  "Null, like all that follow: they mean something at the hosted service alone."
  workersPFBTarget: Int
  flashEnvironmentId: String
  activeBuildid: String
  idePodId: String
  modelReferences: [String!]
  compliance: [String!]
}

type PortConfig { port: String name: String }

type Template {
  id: String
  name: String
  imageName: String
  dockerArgs: String
  containerDiskInGb: Int
  volumeInGb: Int
  volumeMountPath: String
  ports: String
  portsConfig: [PortConfig!]
  env: [EnvironmentVariable]
  isServerless: Boolean
  isPublic: Boolean
  isRunpod: Boolean
  readme: String
  category: String
  containerRegistryAuthId: String
  startSsh: Boolean
  startJupyter: Boolean
  startScript: String
  advancedStart: Boolean
}
`;
