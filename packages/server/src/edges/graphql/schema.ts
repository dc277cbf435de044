import { buildSchema } from "graphql";

/** The GraphQL API: the contract's four operations, and the operations that public clients use to make templates. */
export const schema = buildSchema(`
enum FlashBootType { OFF FLASHBOOT PRIORITY_FLASHBOOT }

"One environment variable."
input EnvironmentVariableInput { key: String! value: String! }
type EnvironmentVariable { key: String! value: String! }

"An endpoint to create or, if an id is given, to modify. On modify, only the fields sent change."
input EndpointInput {
  id: String
  "Endpoint name."
  name: String
  "Serverless template identifier."
  templateId: String
  "GPU tiers, comma-separated, in order of preference."
  gpuIds: String
  gpuCount: Int
  "QB: queue-based. LB: load-balancing."
  type: String
  "Seconds before idle workers shut down."
  idleTimeout: Int
  "Country codes, comma-separated; empty is any."
  locations: String
  flashBootType: FlashBootType
  "QUEUE_DELAY or REQUEST_COUNT."
  scalerType: String
  "Seconds of delay, or requests for each worker."
  scalerValue: Int
  "Workers kept at all times; 0 is scale to zero."
  workersMin: Int
  "The most workers at a time."
  workersMax: Int
  networkVolumeId: String
  executionTimeoutMs: Int
  "CUDA versions, comma-separated."
  allowedCudaVersions: String
  env: [EnvironmentVariableInput]
}

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
  env: [EnvironmentVariableInput]
  isServerless: Boolean
  isPublic: Boolean
  startSsh: Boolean
  startJupyter: Boolean
  readme: String
  category: String
  containerRegistryAuthId: String
}

"Credentials of a container registry; they are never shown."
input SaveRegistryAuthInput { name: String! username: String! password: String! }
input UpdateRegistryAuthInput { id: String! username: String! password: String! }
type ContainerRegistryAuth { id: String name: String }
input SecretCreateInput { name: String! value: String! description: String }
type Secret { id: String name: String description: String createdAt: String }

input UpdateEndpointTemplateInput { endpointId: String! templateId: String! }

type Pod { id: String desiredStatus: String }
type NetworkVolume { id: String name: String size: Int dataCenterId: String }

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
  gpuIds: String
  gpuCount: Int
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
  networkVolumeId: String
  networkVolume: NetworkVolume
  env: [EnvironmentVariable]
  pods: [Pod]
}

type Template {
  id: String
  name: String
  imageName: String
  dockerArgs: String
  containerDiskInGb: Int
  volumeInGb: Int
  volumeMountPath: String
  ports: String
  env: [EnvironmentVariable]
  isServerless: Boolean
  isPublic: Boolean
  readme: String
  category: String
  containerRegistryAuthId: String
}

type ServerlessDiscount { discountFactor: Float type: String expirationDate: String }

type Myself {
  id: String
  endpoints: [Endpoint]
  networkVolumes: [NetworkVolume]
  podTemplates: [Template]
  containerRegistryCreds: [ContainerRegistryAuth]
  secrets: [Secret]
  "Null: there is no discount."
  serverlessDiscount: ServerlessDiscount
}

input GpuTypeFilter { id: String }
input GpuLowestPriceInput { gpuCount: Int }
type LowestPrice { minimumBidPrice: Float uninterruptablePrice: Float }

"A GPU type that endpoints may ask for. Nothing costs anything here: prices are null."
type GpuType {
  "The name, as in gpuTypeIds."
  id: String
  displayName: String
  manufacturer: String
  memoryInGb: Int
  "How many of them one worker can have here now."
  maxGpuCount: Int
  cudaCores: Int
  secureCloud: Boolean
  communityCloud: Boolean
  securePrice: Float
  communityPrice: Float
  oneMonthPrice: Float
  threeMonthPrice: Float
  oneWeekPrice: Float
  communitySpotPrice: Float
  secureSpotPrice: Float
  lowestPrice(input: GpuLowestPriceInput): LowestPrice
}

type Query {
  myself: Myself
  gpuTypes(input: GpuTypeFilter): [GpuType]
}

type Mutation {
  saveEndpoint(input: EndpointInput!): Endpoint
  "Null when it is done. workersMin and workersMax must both be 0."
  deleteEndpoint(id: String!): String
  saveTemplate(input: SaveTemplateInput): Template
  deleteTemplate(templateName: String): String
  updateEndpointTemplate(input: UpdateEndpointTemplateInput): Endpoint
  saveRegistryAuth(input: SaveRegistryAuthInput!): ContainerRegistryAuth
  updateRegistryAuth(input: UpdateRegistryAuthInput!): ContainerRegistryAuth
  "True when it is done. No template may use it."
  deleteRegistryAuth(registryAuthId: String!): Boolean
  secretCreate(input: SecretCreateInput!): Secret
  secretDelete(id: String!): Boolean
}
`);
