import type { Operation } from "./operation.js";
import { each, flag, int, list, listOrNone, nullOnly, number, object, orNull, text, texts } from "./shape.js";

const price = orNull(number);
const lowest = object({
  ...texts("gpuName gpuTypeId"),
  ...each("minimumBidPrice uninterruptablePrice", price),
  ...each("minMemory minVcpu", orNull(int)),
  stockStatus: orNull(text),
  gpuTypeCudaVersions: listOrNone(object(texts("cudaVersion availability"))),
  availableGpuCounts: listOrNone(int),
});
const prices =
  "securePrice communityPrice oneWeekPrice oneMonthPrice threeMonthPrice communitySpotPrice secureSpotPrice";
const gpu = {
  ...texts("id displayName manufacturer"),
  ...each("memoryInGb maxGpuCount", int),
  ...each("secureCloud communityCloud", flag),
  ...each(prices, price),
  cudaCores: orNull(int),
};
const availability = object({
  ...texts("gpuTypeId displayName gpuTypeDisplayName"),
  stockStatus: orNull(text),
  available: flag,
});

/** What endpoints and pods may ask for. */
export const catalogOperations: readonly Operation[] = [
  {
    by: "Python: all",
    root: "query",
    field: "gpuTypes",
    isLiteral: true,
    gives: list(object({ ...texts("id displayName"), memoryInGb: int })),
  },
  {
    by: "Python: one, with its price",
    root: "query",
    field: "gpuTypes",
    isLiteral: true,
    args: () => ({ input: ["GpuTypeFilter", { id: "NVIDIA L4" }] }),
    within: () => ({ price: ["GpuLowestPriceInput!", { gpuCount: 1 }] }),
    gives: list(object({ ...gpu, "lowestPrice(input: $price)": lowest })),
  },
  {
    by: "runpodctl: stock of all",
    root: "query",
    field: "gpuTypes",
    within: () => ({
      price: ["GpuLowestPriceInput", { gpuCount: 1, secureCloud: true, minMemoryInGb: 8, minVcpuCount: 2 }],
    }),
    gives: list(object({ ...gpu, "lowestPrice(input: $price)": lowest })),
  },
  {
    by: "MCP: capacity, with every filter",
    root: "query",
    field: "gpuTypes",
    args: () => ({ input: ["GpuTypeFilter", { cluster: false }] }),
    within: () => ({
      price: [
        "GpuLowestPriceInput!",
        {
          gpuCount: 2,
          minMemoryInGb: 8,
          minVcpuCount: 2,
          secureCloud: true,
          totalDisk: 10,
          minDisk: 10,
          dataCenterId: null,
          includeAiApi: true,
          allowedCudaVersions: ["12.4"],
          minCudaVersion: "12.4",
          compliance: [],
        },
      ],
    }),
    gives: list(object({ ...gpu, "lowestPrice(input: $price)": lowest })),
  },
  {
    by: "flash: some, by name",
    root: "query",
    field: "gpuTypes",
    args: () => ({ input: ["GpuTypeFilter", { ids: ["NVIDIA L4", "NVIDIA A40"] }] }),
    within: () => ({ price: ["GpuLowestPriceInput", { gpuCount: 1 }] }),
    gives: list(object({ id: text, "lowestPrice(input: $price)": object({ stockStatus: orNull(text) }) })),
  },
  {
    by: "runpodctl",
    root: "query",
    field: "serverlessGpuPools",
    gives: list(object({ id: text, gpuTypeIds: list(text) })),
  },
  {
    by: "runpodctl",
    root: "query",
    field: "dataCenters",
    gives: list(object({ ...texts("id name location"), gpuAvailability: listOrNone(availability) })),
  },
  {
    by: "strangers' clients: with filters",
    root: "query",
    field: "dataCenters",
    within: () => ({
      input: [
        "GpuAvailabilityInput",
        { gpuCount: 1, minDisk: 0, minMemoryInGb: 8, minVcpuCount: 2, secureCloud: true, includeAiApi: false },
      ],
    }),
    gives: list(
      object({
        ...texts("id name location"),
        storageSupport: flag,
        "gpuAvailability(input: $input)": listOrNone(availability),
      }),
    ),
  },
  {
    by: "flash",
    root: "query",
    field: "cpuFlavors",
    args: () => ({ input: ["CpuFlavorInput", { id: "cpu3c", isSls: true }] }),
    within: () => ({
      specifics: ["SpecificsInput", { dataCenterId: "EU-RO-1", instanceId: "cpu3c-1-2", isSls: true }],
    }),
    gives: list(
      object({
        ...texts("id groupName displayName"),
        ...each("minVcpu maxVcpu", int),
        ramMultiplier: number,
        "specifics(input: $specifics)": object({ stockStatus: orNull(text) }),
      }),
    ),
  },
  { by: "strangers' clients", root: "query", field: "cpuTypes", gives: list(object(texts("id displayName"))) },
  {
    by: "strangers' clients: the user's data centres",
    root: "query",
    field: "myself",
    gives: object({ datacenters: list(object({ ...texts("id name"), storageSupport: flag })), email: nullOnly }),
  },
];
