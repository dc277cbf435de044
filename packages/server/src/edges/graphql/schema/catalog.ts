/** What endpoints may ask for. Prices are an hour's; null if none is set. */
export const catalogTypes = `
input GpuTypeFilter {
  id: String
  ids: [String!]
  "Ignored: no GPUs are kept for clusters."
  cluster: Boolean @ignored
}
input GpuLowestPriceInput {
  gpuCount: Int
  dataCenterId: String
  minMemoryInGb: Int
  minVcpuCount: Int
  allowedCudaVersions: [String!]
  minCudaVersion: String
  "Ignored, like all that follow: every place here is the same in it, or hosts do not tell it."
  secureCloud: Boolean @ignored
  totalDisk: Int @ignored
  minDisk: Int @ignored
  includeAiApi: Boolean @ignored
  compliance: [String!] @ignored
}
type GpuTypeCudaVersion { cudaVersion: String availability: String }
type LowestPrice {
  gpuName: String
  gpuTypeId: String
  minimumBidPrice: Float
  uninterruptablePrice: Float
  minMemory: Int
  minVcpu: Int
  "High, Medium or Low; null if none is free."
  stockStatus: String
  "Empty: hosts do not report CUDA versions."
  gpuTypeCudaVersions: [GpuTypeCudaVersion!]
  "The numbers of these GPUs that one worker can have."
  availableGpuCounts: [Int!]
}

"A GPU type that endpoints may ask for."
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

"A tier, and the types that belong to it."
type ServerlessGpuPool { id: String gpuTypeIds: [String!] }

input GpuAvailabilityInput {
  gpuCount: Int
  minMemoryInGb: Int
  minVcpuCount: Int
  "Ignored, like all that follow: every place here is the same in it, or hosts do not tell it."
  minDisk: Int @ignored
  secureCloud: Boolean @ignored
  includeAiApi: Boolean @ignored
}
type GpuAvailability {
  gpuTypeId: String
  displayName: String
  gpuTypeDisplayName: String
  stockStatus: String
  available: Boolean
}
type DataCenter {
  id: String
  name: String
  "The country's code."
  location: String
  storageSupport: Boolean
  gpuAvailability(input: GpuAvailabilityInput): [GpuAvailability!]
}

input CpuFlavorInput { id: String "Ignored: endpoints and pods have the same instances." isSls: Boolean @ignored }
input SpecificsInput { dataCenterId: String instanceId: String "Ignored: endpoints and pods have the same instances." isSls: Boolean @ignored }
type CpuSpecifics { stockStatus: String }
type CpuFlavor {
  id: String
  groupName: String
  displayName: String
  minVcpu: Int
  maxVcpu: Int
  ramMultiplier: Float
  specifics(input: SpecificsInput): CpuSpecifics
}
type CpuType { id: String displayName: String }
`;
