import { billPeriod, v2 } from "@millrace/api";
import type { FastifyInstance, FastifyRequest } from "fastify";
import Type, { type TSchema } from "typebox";
import { seesMore } from "../../operations/access/visible.js";
import type { Parts } from "../../operations/needs.js";
import { iso } from "../../operations/show-resources.js";
import {
  type BillOf,
  type BillQuery,
  type BillRecord,
  bill,
  type Period,
  periodOf,
  rounded,
  totalOf,
} from "../../operations/usage/bill.js";
import { sendList } from "../shared/replies/send-list.js";
import { route } from "./route-schema.js";

const tag = "billing";
const text = (description: string) => Type.Optional(Type.String({ description }));
const period = {
  ...billPeriod,
  lastN: Type.Optional(
    Type.String({
      pattern: "^[1-9]\\d{0,3}$",
      title: "a whole number from 1",
      description: "The last so many buckets, the present one included, instead of times.",
    }),
  ),
};

type Query = Readonly<Record<string, string | undefined>>;

const billQuery = ({ lastN, ...query }: Query): BillQuery => ({
  ...(query as BillQuery),
  ...(lastN === undefined ? {} : { lastN: Number(lastN) }),
});

type Costs = Readonly<Record<string, number>>;

/** A bill of one kind: its costs, and the name of what each record is for. */
interface Kind {
  readonly path: string;
  readonly operationId: string;
  readonly summary: string;
  readonly reply: TSchema;
  /** Absent: what does not exist here, whose bill is empty. */
  readonly of?: BillOf["kind"];
  readonly costs: (record: BillRecord) => Costs;
  readonly id?: { readonly name: string; readonly count: string };
}

const compute = (record: BillRecord) => ({
  totalAmount: totalOf(record),
  gpuAmount: record.gpuCost,
  cpuAmount: record.cpuCost,
  diskAmount: record.diskCost,
});

const kinds: readonly Kind[] = [
  {
    path: "/billing/pods",
    operationId: "listPodBilling",
    summary: "What pods cost",
    reply: v2.PodBilling,
    of: "pod",
    costs: compute,
    id: { name: "podId", count: "uniquePodCount" },
  },
  {
    path: "/billing/serverless",
    operationId: "listServerlessBilling",
    summary: "What the workers of endpoints cost",
    reply: v2.ServerlessBilling,
    of: "endpoint",
    costs: (record) => ({ ...compute(record), feeAmount: 0 }),
    id: { name: "serverlessId", count: "uniqueServerlessCount" },
  },
  ...["/billing/networkvolumes", "/billing/network-volumes"].map((path) => ({
    path,
    operationId: path.includes("-") ? "listNetworkVolumesBilling" : "listNetworkVolumeBilling",
    summary: "What network volumes cost",
    reply: v2.VolumeBilling,
    of: "volume" as const,
    costs: (record: BillRecord) => ({
      totalAmount: totalOf(record),
      standardAmount: record.diskCost,
      highPerformanceAmount: 0,
    }),
    id: { name: "networkVolumeId", count: "uniqueNetworkVolumeCount" },
  })),
  {
    path: "/billing/endpoints",
    operationId: "listEndpointBilling",
    summary: "What public endpoints of the hosted service cost: nothing, as there are none",
    reply: v2.EndpointBilling,
    costs: () => ({ totalAmount: 0 }),
  },
  {
    path: "/billing/clusters",
    operationId: "listClusterBilling",
    summary: "What clusters cost: nothing, as there are none",
    reply: v2.ClusterBilling,
    costs: () => ({ totalAmount: 0, gpuAmount: 0, diskAmount: 0, networkingAmount: 0 }),
    id: { name: "clusterId", count: "uniqueClusterCount" },
  },
];

const nothing: BillRecord = {
  from: 0,
  to: 0,
  resource: "",
  gpuType: "",
  amount: 0,
  gpuCost: 0,
  cpuCost: 0,
  diskCost: 0,
};

/** Bills of REST v2. */
export function billingReads(app: FastifyInstance, parts: Parts): void {
  for (const { path, operationId, summary, reply, of, costs, id } of kinds) {
    const querystring = Type.Object({ ...period, ...(id ? { [id.name]: text("Only this one.") } : {}) });
    app.get(
      path,
      route({ operationId, summary, tag, reply, querystring }),
      async ({ caller, query: asked }, answer) => {
        const query = asked as Query;
        seesMore(caller, "bills");
        const time = await periodOf(parts, caller, billQuery(query));
        const resource = id && query[id.name];
        const records = of ? await bill(parts, caller, time, { kind: of, by: "resource", resource }) : [];
        const found = new Set(records.map((record) => record.resource));
        const metadata = {
          query: { ...windowOf(time.buckets), bucketSize: time.size, ...(id ? { [id.name]: resource ?? null } : {}) },
          recordCount: records.length,
          ...(id ? { [id.count]: found.size } : {}),
          totals: sumOf([costs(nothing), ...records.map(costs)]),
        };
        const view = (record: BillRecord) => ({
          ...rangeOf(record),
          ...costs(record),
          ...(id ? { [id.name]: record.resource } : {}),
        });
        return sendList(answer, records, view, "records", { metadata });
      },
    );
  }
  app.get(
    "/billing",
    route({
      operationId: "listBilling",
      summary: "What everything costs",
      tag,
      reply: v2.Billing,
      querystring: Type.Object(period),
    }),
    async (request, answer) => {
      const time = await periodOf(parts, request.caller, billQuery(request.query as Query));
      const records = await everything(parts, request, time);
      const totals = sumOf([wholeCosts([]), ...records.map(({ costs }) => costs)]);
      const metadata = {
        query: { ...windowOf(time.buckets), bucketSize: time.size },
        recordCount: records.length,
        totals,
      };
      return sendList(answer, records, ({ range, costs }) => ({ ...range, ...costs }), "records", { metadata });
    },
  );
}

type Times = Pick<BillRecord, "from" | "to">;
const rangeOf = ({ from, to }: Times) => ({ startTime: iso(from), endTime: iso(to) });

function windowOf(buckets: readonly Times[]) {
  const [first, last] = [buckets[0], buckets.at(-1)];
  return rangeOf({ from: first?.from ?? 0, to: last?.to ?? 0 });
}

function sumOf(all: readonly Costs[]): Costs {
  const sum: Record<string, number> = {};
  for (const costs of all)
    for (const [name, cost] of Object.entries(costs)) sum[name] = rounded((sum[name] ?? 0) + cost);
  return sum;
}

/** One record for each bucket in which anything was used. */
async function everything(parts: Parts, { caller }: FastifyRequest, time: Period) {
  const bills = new Map<number, { range: ReturnType<typeof rangeOf>; of: (readonly [BillOf["kind"], BillRecord])[] }>();
  for (const kind of ["pod", "endpoint", "volume"] as const)
    for (const record of await bill(parts, caller, time, { kind, by: "all" })) {
      const at = bills.get(record.from) ?? { range: rangeOf(record), of: [] };
      at.of.push([kind, record]);
      bills.set(record.from, at);
    }
  const sorted = [...bills].sort(([one], [other]) => one - other);
  return sorted.map(([, { range, of }]) => ({ range, costs: wholeCosts(of) }));
}

function wholeCosts(of: readonly (readonly [BillOf["kind"], BillRecord])[]): Costs {
  const record = (kind: BillOf["kind"]) => of.find(([each]) => each === kind)?.[1] ?? nothing;
  const [pod, worker, volume] = [record("pod"), record("endpoint"), record("volume")];
  return {
    totalAmount: rounded(totalOf(pod) + totalOf(worker) + totalOf(volume)),
    podGpuAmount: pod.gpuCost,
    podCpuAmount: pod.cpuCost,
    podDiskAmount: pod.diskCost,
    serverlessGpuAmount: worker.gpuCost,
    serverlessCpuAmount: worker.cpuCost,
    serverlessDiskAmount: 0,
    serverlessFeeAmount: 0,
    storageStandardAmount: volume.diskCost,
    storageHighPerformanceAmount: 0,
    endpointAmount: 0,
    clusterGpuAmount: 0,
    clusterDiskAmount: 0,
    clusterNetworkingAmount: 0,
  };
}
