import * as api from "@millrace/api";
import type { FastifyInstance } from "fastify";
import Type from "typebox";
import { isSameType } from "../../domain/hosts/gpu.js";
import { isThere } from "../../domain/hosts/host.js";
import { invalid } from "../../errors.js";
import { dataCenters } from "../../limits/index.js";
import { visibleEndpoints } from "../../operations/access/visible.js";
import { checkGpuTypes } from "../../operations/endpoints/endpoint-settings.js";
import type { Parts } from "../../operations/needs.js";
import { iso } from "../../operations/show-resources.js";
import { type BillQuery, type BillRecord, bill, periodOf, totalOf } from "../../operations/usage/bill.js";
import { savePrices, showPrices } from "../../operations/usage/prices.js";
import { listOf } from "../shared/params.js";
import { sendList } from "../shared/replies/send-list.js";
import { doc, writeErrors } from "./route-schema.js";

const tag = "billing";
const moment = (description: string) => Type.Optional(Type.String({ description }));
const types = Type.Optional(
  Type.Union([Type.String(), Type.Array(Type.String())], {
    description: "Only these GPU types: several in a comma-separated text, or repeated.",
  }),
);
const grouping = (...names: readonly string[]) => Type.Optional(Type.Union(names.map((name) => Type.Literal(name))));

interface Query extends BillQuery {
  readonly grouping?: string;
  readonly endpointId?: string;
  readonly podId?: string;
  readonly templateId?: string;
  readonly imageName?: string;
  readonly gpuTypeId?: string | readonly string[];
  readonly dataCenterId?: string | readonly string[];
}

/** The GPU types asked for; refuses one that nobody has heard of. */
function gpusOf(parts: Parts, { gpuTypeId }: Query): readonly string[] | undefined {
  const types = listOf(gpuTypeId);
  checkGpuTypes(parts, types ?? [], "gpuTypeId");
  return types;
}

/** Whether a GPU type is one of those asked for. */
const isAsked = (wanted: readonly string[] | undefined, type: string) =>
  wanted === undefined || wanted.some((each) => isSameType(each, type));

/** Bills and prices. */
export function billingRoutes(app: FastifyInstance, parts: Parts): void {
  app.get(
    "/billing/endpoints",
    doc("What endpoints' workers have used, and what it costs", tag, Type.Array(api.BillingRecord), {
      querystring: Type.Object({
        ...api.billPeriod,
        grouping: grouping("endpointId", "gpuTypeId"),
        endpointId: moment("Only this endpoint, also after it was deleted."),
        templateId: moment("Only endpoints of this template."),
        imageName: moment("Only endpoints with this image."),
        gpuTypeId: types,
        dataCenterId: Type.Optional(
          Type.Union([Type.String(), Type.Array(Type.String())], {
            description: "Only endpoints that may run in one of these data centres.",
          }),
        ),
      }),
    }),
    async ({ caller, query: asked }, reply) => {
      const query = asked as Query;
      const wanted = endpointsOf(parts, caller, query);
      const gpus = gpusOf(parts, query);
      const isWanted =
        wanted || gpus
          ? ({ resource, gpuType }: { resource: string; gpuType: string }) =>
              (wanted?.has(resource) ?? true) && isAsked(gpus, gpuType)
          : undefined;
      const by = query.grouping === "gpuTypeId" ? "gpuType" : "resource";
      const of = { kind: "endpoint" as const, by, resource: query.endpointId, isWanted } as const;
      return sendList(reply, await bill(parts, caller, await periodOf(parts, caller, query), of), (record) =>
        timed(record, by === "gpuType" ? { gpuTypeId: record.gpuType } : { endpointId: record.resource }),
      );
    },
  );
  app.get(
    "/billing/pods",
    doc("What pods have used, and what it costs", tag, Type.Array(api.BillingRecord), {
      querystring: Type.Object({
        ...api.billPeriod,
        grouping: grouping("gpuTypeId", "podId"),
        podId: moment("Only this pod, also after it was deleted."),
        gpuTypeId: types,
      }),
    }),
    async ({ caller, query: asked }, reply) => {
      const query = asked as Query;
      const gpus = gpusOf(parts, query);
      const isWanted = gpus && (({ gpuType }: { gpuType: string }) => isAsked(gpus, gpuType));
      const by = query.grouping === "podId" ? "resource" : "gpuType";
      const of = { kind: "pod" as const, by, resource: query.podId, isWanted } as const;
      return sendList(reply, await bill(parts, caller, await periodOf(parts, caller, query), of), (record) =>
        timed(record, by === "gpuType" ? { gpuTypeId: record.gpuType } : { podId: record.resource }),
      );
    },
  );
  app.get(
    "/billing/networkvolumes",
    doc("What network volumes have used, and what it costs", tag, Type.Array(api.VolumeBillingRecord), {
      querystring: Type.Object(api.billPeriod),
    }),
    async ({ caller, query }, reply) => {
      const records = await bill(parts, caller, await periodOf(parts, caller, query as Query), {
        kind: "volume",
        by: "all",
      });
      return sendList(reply, records, (record) => ({
        time: iso(record.from),
        amount: totalOf(record),
        diskSpaceBilledGb: Math.round(record.amount / (Math.min(record.to, parts.clock.now()) - record.from)),
        highPerformanceStorageAmount: 0,
        highPerformanceStorageDiskSpaceBilledGb: 0,
      }));
    },
  );
  app.get("/prices", doc("What an hour of each thing costs", tag, api.Prices), async () => showPrices(parts));
}

/** Prices: the route that takes a body. */
export function priceWrites(app: FastifyInstance, parts: Parts): void {
  const schema = {
    summary: "Set all prices; for admins",
    tags: [tag],
    body: api.PricesUpdate,
    response: { 200: api.Prices, ...writeErrors },
  };
  app.put("/prices", { schema }, async ({ caller, body }) => {
    await savePrices(parts, caller, body as api.PricesUpdate);
    return showPrices(parts);
  });
}

const timed = (record: BillRecord, group: object) => ({
  time: iso(record.from),
  amount: totalOf(record),
  timeBilledMs: record.amount,
  ...group,
});

/** The ids of the endpoints that a filter names; undefined if it names none. */
function endpointsOf(parts: Parts, caller: Parameters<typeof visibleEndpoints>[1], query: Query) {
  const { templateId, imageName } = query;
  const dataCenterIds = listOf(query.dataCenterId);
  const unknown = dataCenterIds?.find((id) => !dataCenters.some((each) => each === id));
  if (unknown !== undefined)
    throw invalid(`'${unknown.slice(0, 80)}' in dataCenterId is not a data centre: write one such as EU-RO-1.`);
  if (templateId === undefined && imageName === undefined && dataCenterIds === undefined) return undefined;
  const found = visibleEndpoints(parts, caller).filter(({ settings }) => {
    const image = parts.registry.template(settings.templateId)?.settings.imageName;
    const isInPlace =
      dataCenterIds === undefined ||
      settings.dataCenterIds.length === 0 ||
      settings.dataCenterIds.some((id) => isThere({ location: id }, { locations: "", dataCenterIds }));
    return (
      isInPlace &&
      (templateId === undefined || settings.templateId === templateId) &&
      (imageName === undefined || image === imageName)
    );
  });
  return new Set(found.map(({ id }) => id));
}
