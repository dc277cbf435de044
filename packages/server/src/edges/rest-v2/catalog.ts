import { v2 } from "@millrace/api";
import type { FastifyInstance, FastifyRequest } from "fastify";
import Type from "typebox";
import { gpuPrice, shownAmount } from "../../domain/usage/price.js";
import { invalid, Refusal } from "../../errors.js";
import {
  cpuAvailability,
  cpuCatalog,
  dataCenterCatalog,
  gpuAvailability,
  gpuCatalog,
} from "../../operations/hosts/catalog.js";
import type { Parts } from "../../operations/needs.js";
import { idOf } from "../shared/params.js";
import { route } from "./route-schema.js";

type Query = Record<string, string | undefined>;
const text = (description: string) => Type.Optional(Type.String({ description }));
const gpuQuery = Type.Object({
  include: text("AVAILABILITY: how many are free."),
  product: text("POD, CLUSTER or SERVERLESS; availability here is the same for all."),
  count: text("How many GPUs one worker is to have."),
  cloud: text("SECURE or COMMUNITY; every host here counts as SECURE."),
  minCudaVersion: text("Availability counts GPUs whose driver supports this CUDA version, such as 12 or 12.8."),
});
const cpuQuery = Type.Object({
  include: text("AVAILABILITY: how many are free."),
  product: text("POD or SERVERLESS; availability here is the same for both."),
  vcpuCount: text("How many processors one worker is to have."),
});
const placeQuery = Type.Object({
  include: text("GPU_AVAILABILITY and CPU_AVAILABILITY, comma-separated."),
  regions: text("Only these regions, comma-separated."),
  networkVolumeTypes: text("Only data centres with these types of network volumes, comma-separated."),
  compliance: text("Only data centres with these certificates: there are none here."),
  globalNetwork: text("true: only those in the global network, where none is."),
});

/** What endpoints may ask for, and how much of it there is. */
export function catalogRoutes(app: FastifyInstance, parts: Parts): void {
  const tag = "catalog";
  app.get(
    "/catalog/gpus",
    route({ operationId: "listGpuTypes", summary: "List GPU types", tag, querystring: gpuQuery, reply: v2.GpuTypes }),
    async (request) => ({ gpus: gpus(parts, queryOf(request)) }),
  );
  app.get(
    "/catalog/gpus/:gpuTypeId",
    route({
      tag,
      names: ["gpuTypeId"],
      operationId: "getGpuType",
      summary: "Show a GPU type",
      querystring: gpuQuery,
      reply: v2.GpuType,
    }),
    async (request) => found(gpus(parts, queryOf(request)), request, "gpuTypeId", "GPU type"),
  );
  app.get(
    "/catalog/cpus",
    route({
      operationId: "listCpuTypes",
      summary: "List CPU flavours",
      tag,
      querystring: cpuQuery,
      reply: v2.CpuTypes,
    }),
    async (request) => ({ cpus: cpus(parts, queryOf(request)) }),
  );
  app.get(
    "/catalog/cpus/:cpuFlavorId",
    route({
      tag,
      names: ["cpuFlavorId"],
      operationId: "getCpuType",
      summary: "Show a CPU flavour",
      querystring: cpuQuery,
      reply: v2.CpuType,
    }),
    async (request) => found(cpus(parts, queryOf(request)), request, "cpuFlavorId", "CPU flavour"),
  );
  app.get(
    "/catalog/datacenters",
    route({
      operationId: "listDataCenters",
      summary: "List data centres",
      tag,
      querystring: placeQuery,
      reply: v2.DataCenters,
    }),
    async (request) => ({ dataCenters: dataCenters(parts, queryOf(request)) }),
  );
  app.get(
    "/catalog/datacenters/:dataCenterId",
    route({
      tag,
      names: ["dataCenterId"],
      operationId: "getDataCenter",
      summary: "Show a data centre",
      querystring: placeQuery,
      reply: v2.DataCenter,
    }),
    async (request) => found(dataCenters(parts, queryOf(request)), request, "dataCenterId", "data centre"),
  );
}

const queryOf = (request: FastifyRequest) => request.query as Query;

function found<T extends { readonly id: string }>(
  all: readonly T[],
  request: FastifyRequest,
  name: string,
  what: string,
): T {
  const id = idOf(request, name);
  const one = all.find((each) => each.id === id);
  if (!one) throw new Refusal("NOT_FOUND", `There is no ${what} '${id.slice(0, 80)}'.`);
  return one;
}

/** The entries of a comma-separated parameter, each of which must be one of `names`. */
function listOf(query: Query, field: string, names: readonly string[]): string[] {
  const entries = (query[field] ?? "").split(",").filter(Boolean);
  const unknown = entries.find((entry) => !names.includes(entry));
  if (unknown !== undefined) throw invalid(`'${unknown.slice(0, 80)}' in ${field} is not one of ${names.join(", ")}.`);
  return entries;
}

function countOf(query: Query, field: string, least: number): number {
  const text = query[field];
  if (text === undefined) return least;
  if (!/^\d{1,4}$/.test(text) || Number(text) < least)
    throw invalid(`'${field}' must be a whole number from ${least}.`);
  return Number(text);
}

function gpus(parts: Parts, query: Query) {
  const isAvailability = listOf(query, "include", ["AVAILABILITY"]).length > 0;
  listOf(query, "product", ["POD", "CLUSTER", "SERVERLESS"]);
  listOf(query, "cloud", ["SECURE", "COMMUNITY"]);
  const count = countOf(query, "count", 1);
  const minCuda = query.minCudaVersion;
  if (!/^\d{1,3}(\.\d{1,3})?$/.test(minCuda ?? "0"))
    throw invalid("'minCudaVersion' must be a version such as 12 or 12.8.");
  return gpuCatalog(parts).map((type) => ({
    id: type.id,
    name: type.displayName,
    pool: type.pool ?? null,
    manufacturer: type.manufacturer === "AMD" ? ("AMD" as const) : ("NVIDIA" as const),
    memory: type.memoryInGb,
    secure: true,
    community: false,
    price: { secure: shownAmount(gpuPrice(parts.registry.prices.now, type.id) ?? 0), community: 0 },
    maxCount: { secure: type.maxGpuCount, community: 0 },
    ...(isAvailability
      ? {
          availability:
            query.cloud === "COMMUNITY" ? ("NONE" as const) : gpuAvailability(parts, type.id, { count, minCuda }),
          dataCenters: placesHere(parts, (dataCenterId) =>
            gpuAvailability(parts, type.id, { count, minCuda, dataCenterId }),
          ),
        }
      : {}),
  }));
}

/** What an hour of a virtual processor with its memory costs. */
function perVcpu({ registry }: Parts, gb: number): number {
  const { vcpu, memoryGb } = registry.prices.now;
  return shownAmount(Math.round(vcpu + gb * memoryGb));
}

function cpus(parts: Parts, query: Query) {
  const isAvailability = listOf(query, "include", ["AVAILABILITY"]).length > 0;
  listOf(query, "product", ["POD", "SERVERLESS"]);
  const count = countOf(query, "vcpuCount", 2);
  return cpuCatalog(parts).map(({ id, group, gbPerCpu, cpusMax }) => ({
    id,
    name: `${group} (${id})`,
    group,
    vcpu: { min: 1, max: cpusMax },
    ramGbPerVcpu: gbPerCpu,
    price: { securePerVcpu: perVcpu(parts, gbPerCpu), serverlessPerVcpu: perVcpu(parts, gbPerCpu) },
    ...(isAvailability
      ? {
          availability: cpuAvailability(parts, { count }),
          dataCenters: placesHere(parts, (dataCenterId) => cpuAvailability(parts, { count, dataCenterId })),
        }
      : {}),
  }));
}

/** Words of the public interface that filter for what no host here has. */
const worldRegions = [...v2.regions, "SOUTH_AMERICA", "MIDDLE_EAST", "AFRICA", "ANTARCTICA"];
const certificates = [
  ...["GDPR", "ISO_IEC_27001", "ISO_14001", "PCI_DSS", "HITRUST", "SOC_1_TYPE_2", "SOC_2_TYPE_2", "SOC_3_TYPE_2"],
  ...["ITAR", "FISMA_HIGH", "HIPAA", "RENEWABLE"],
];

/** How much is free in each place where hosts are. */
const placesHere = (parts: Parts, levelAt: (id: string) => v2.AvailabilityLevel) =>
  dataCenterCatalog(parts)
    .filter(({ isHere }) => isHere)
    .map(({ id }) => ({ id, name: id, availability: levelAt(id) }));

function dataCenters(parts: Parts, query: Query) {
  const include = listOf(query, "include", ["GPU_AVAILABILITY", "CPU_AVAILABILITY"]);
  const regions = listOf(query, "regions", worldRegions);
  const types = listOf(query, "networkVolumeTypes", v2.volumeTypes);
  const wantsGlobal = listOf(query, "globalNetwork", ["true", "false"]).includes("true");
  const isNone = listOf(query, "compliance", certificates).length > 0 || wantsGlobal;
  return dataCenterCatalog(parts)
    .filter(({ region }) => regions.length === 0 || regions.includes(region))
    .filter(() => !isNone && (types.length === 0 || types.includes("STANDARD")))
    .map(({ id, region, isHere }) => ({
      id,
      name: id,
      region,
      globalNetwork: false,
      networkVolumeTypes: ["STANDARD"],
      compliance: [],
      ...(include.includes("GPU_AVAILABILITY") ? { gpuAvailability: isHere ? gpusAt(parts, id) : [] } : {}),
      ...(include.includes("CPU_AVAILABILITY") ? { cpuAvailability: isHere ? cpusAt(parts, id) : [] } : {}),
    }));
}

/** The GPU types that hosts in a place have. */
const gpusAt = (parts: Parts, dataCenterId: string) =>
  gpuCatalog(parts)
    .filter(({ maxGpuCount }) => maxGpuCount > 0)
    .map(({ id, displayName }) => ({
      id,
      name: displayName,
      availability: gpuAvailability(parts, id, { dataCenterId }),
    }));

const cpusAt = (parts: Parts, dataCenterId: string) =>
  cpuCatalog(parts).map(({ id }) => ({ id, name: id, availability: cpuAvailability(parts, { dataCenterId }) }));
