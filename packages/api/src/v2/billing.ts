import Type, { type TProperties } from "typebox";
import { bucketSizes } from "../billing.js";

const time = Type.String({ format: "date-time" });
const amounts = (...names: readonly string[]) =>
  Object.fromEntries(["totalAmount", ...names].map((name) => [name, Type.Number({ minimum: 0 })]));

/** A reply of `GET /v2/billing` or below: records, and what they add up to. */
function billing(costs: TProperties, id?: { readonly name: string; readonly count: string }) {
  return Type.Object({
    records: Type.Array(
      Type.Object({ startTime: time, endTime: time, ...costs, ...(id ? { [id.name]: Type.String() } : {}) }),
    ),
    metadata: Type.Object({
      query: Type.Object({
        startTime: time,
        endTime: time,
        bucketSize: Type.Union(bucketSizes.map((size) => Type.Literal(size))),
        ...(id ? { [id.name]: Type.Union([Type.String(), Type.Null()]) } : {}),
      }),
      recordCount: Type.Integer({ minimum: 0 }),
      ...(id ? { [id.count]: Type.Integer({ minimum: 0 }) } : {}),
      totals: Type.Object(costs),
    }),
  });
}

export const Billing = billing(
  amounts(
    ...["podGpuAmount", "podCpuAmount", "podDiskAmount"],
    ...["serverlessGpuAmount", "serverlessCpuAmount", "serverlessDiskAmount", "serverlessFeeAmount"],
    ...["storageStandardAmount", "storageHighPerformanceAmount", "endpointAmount"],
    ...["clusterGpuAmount", "clusterDiskAmount", "clusterNetworkingAmount"],
  ),
);
export const PodBilling = billing(amounts("gpuAmount", "cpuAmount", "diskAmount"), {
  name: "podId",
  count: "uniquePodCount",
});
export const ServerlessBilling = billing(amounts("gpuAmount", "cpuAmount", "diskAmount", "feeAmount"), {
  name: "serverlessId",
  count: "uniqueServerlessCount",
});
export const VolumeBilling = billing(amounts("standardAmount", "highPerformanceAmount"), {
  name: "networkVolumeId",
  count: "uniqueNetworkVolumeCount",
});
export const ClusterBilling = billing(amounts("gpuAmount", "diskAmount", "networkingAmount"), {
  name: "clusterId",
  count: "uniqueClusterCount",
});
export const EndpointBilling = billing(amounts());
