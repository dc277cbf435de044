import type { v2 } from "@millrace/api";
import type { FastifyRequest } from "fastify";
import type { ApiKey } from "../../domain/access/key.js";
import type { Endpoint, EndpointSettings } from "../../domain/endpoints/endpoint.js";
import { joinCommand, splitCommand, type TemplateSettings } from "../../domain/endpoints/template.js";
import { gbPerCpu, readInstance } from "../../domain/hosts/cpu.js";
import { gpuTiers, isTier, tiersOfTypes } from "../../domain/hosts/gpu.js";
import { invalid } from "../../errors.js";
import { limits } from "../../limits/index.js";
import { forCaller } from "../../operations/access/visible.js";
import type { EndpointInput } from "../../operations/endpoints/endpoint-settings.js";
import type { Together } from "../../operations/endpoints/save-with-template.js";
import type { Parts } from "../../operations/needs.js";
import { iso } from "../../operations/show-resources.js";
import type { TemplateInput } from "../../operations/templates/save-template.js";

const types = { QUEUE: "QB", LOAD_BALANCER: "LB" } as const;

/** The flat settings that a nested body stands for; what was not sent is left out. */
export function endpointInput(body: v2.EndpointCreate | v2.EndpointUpdate): Together {
  const { name, templateId, gpu, cpu, workers = {}, scaling, dataCenterIds, networkVolumes, timeout, flashboot } = body;
  if (gpu && cpu) throw invalid("Send either 'gpu' or 'cpu', not both.");
  const endpoint: EndpointInput = defined({
    name,
    templateId,
    type: "type" in body ? types[body.type] : undefined,
    ...(gpu ? gpuInput(gpu) : {}),
    ...(cpu ? { computeType: "CPU" as const, cpuFlavorIds: [cpu.id], vcpuCount: cpu.vcpuCount, instanceIds: [] } : {}),
    workersMin: workers.min,
    workersMax: workers.max,
    idleTimeout: workers.idleTimeout,
    ...(scaling ? scalingInput(scaling) : {}),
    dataCenterIds,
    networkVolumeIds: networkVolumes,
    executionTimeoutMs: timeout,
    flashBootType: typeof flashboot === "boolean" ? (flashboot ? "FLASHBOOT" : "OFF") : flashboot,
    env: body.env === undefined ? undefined : {}, // it stands in the template
  });
  return { endpoint, template: containerInput(body) };
}

/** What a container is made of, as a template's settings. */
export function containerInput(body: v2.Container): TemplateInput {
  const { image, args, disk, ports, env, registry } = body;
  return defined({
    imageName: image,
    dockerStartCmd: args === undefined ? undefined : splitCommand(args, limits.listItemsMax + 1),
    containerDiskInGb: disk,
    ports,
    env,
    containerRegistryAuthId: registry,
  });
}

function gpuInput({
  pools,
  excludedTypes = [],
  count,
  allowedCudaVersions,
}: v2.EndpointCreate["gpu"] & object): EndpointInput {
  const excluded = excludedTypes.map((type) => `-${type}`);
  const isComma = excludedTypes.find((type) => type.includes(","));
  if (isComma !== undefined) throw invalid(`'${isComma.slice(0, 80)}' in gpu.excludedTypes is not a GPU type.`);
  return {
    computeType: "GPU",
    gpuIds: [...pools, ...excluded].join(","),
    ...(count === undefined ? {} : { gpuCount: count }),
    ...(allowedCudaVersions ? { allowedCudaVersions } : {}),
  };
}

const scalingInput = (scaling: v2.EndpointCreate["scaling"]): EndpointInput => ({
  scalerType: scaling.type,
  scalerValue: scaling.type === "QUEUE_DELAY" ? scaling.queueDelay : scaling.requestCount,
});

/** An object without its undefined fields. */
const defined = <T extends object>(fields: T): T =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as T;

/** Parts of URLs under which a request reached this API. */
export const baseOf = ({ protocol, host, url }: FastifyRequest): string =>
  `${protocol}://${host}${url.startsWith("/sdk/") ? "/sdk" : ""}/v2`;

/** An endpoint with its template, in REST v2's nested shape. */
export function endpointView(
  { registry, lbDomain }: Pick<Parts, "registry"> & { readonly lbDomain?: string | undefined },
  request: FastifyRequest,
  endpoint: Endpoint,
): v2.Endpoint {
  const { settings } = endpoint;
  const template = registry.template(settings.templateId);
  return {
    id: endpoint.id,
    name: settings.name,
    type: settings.type === "QB" ? "QUEUE" : "LOAD_BALANCER",
    requestUrls: requestUrls(baseOf(request), endpoint, lbDomain),
    ...(template ? containerView(request.caller, template, template.settings) : {}),
    env: {
      ...(template ? forCaller(request.caller, template, template.settings).env : {}),
      ...forCaller(request.caller, endpoint, settings).env,
    },
    gpu: settings.computeType === "GPU" ? gpuView(settings) : null,
    cpu: settings.computeType === "CPU" ? cpuView(settings) : null,
    workers: { min: settings.workersMin, max: settings.workersMax, idleTimeout: settings.idleTimeout },
    scaling:
      settings.scalerType === "QUEUE_DELAY"
        ? { type: "QUEUE_DELAY", queueDelay: settings.scalerValue }
        : { type: "REQUEST_COUNT", requestCount: settings.scalerValue },
    dataCenterIds: [...settings.dataCenterIds],
    networkVolumes: [...settings.networkVolumeIds],
    timeout: settings.executionTimeoutMs,
    flashboot: settings.flashBootType,
    createdAt: iso(endpoint.createdAt),
  };
}

/** What a container is made of, from a template's settings. */
export function containerView(
  caller: ApiKey,
  owned: { readonly ownerNo: number },
  settings: TemplateSettings,
): v2.Container {
  const { imageName, dockerStartCmd, containerDiskInGb, ports, env, containerRegistryAuthId } = settings;
  return {
    image: imageName,
    args: joinCommand(dockerStartCmd),
    disk: containerDiskInGb,
    ports: [...ports],
    env: forCaller(caller, owned, { env }).env,
    registry: containerRegistryAuthId ?? null,
  };
}

function gpuView({ gpuTypeIds, gpuCount, allowedCudaVersions }: EndpointSettings): v2.Endpoint["gpu"] {
  const wanted = { count: gpuCount, ...(allowedCudaVersions ? { allowedCudaVersions: [...allowedCudaVersions] } : {}) };
  if (gpuTypeIds.length === 0) return { pools: Object.keys(gpuTiers), excludedTypes: [], ...wanted };
  const pools = tiersOfTypes(gpuTypeIds).split(",").filter(isTier);
  const excludedTypes = pools.flatMap((tier) => gpuTiers[tier]).filter((type) => !gpuTypeIds.includes(type));
  return { pools, excludedTypes, ...wanted };
}

function cpuView({ cpuFlavorIds = [], instanceIds, vcpuCount = 2 }: EndpointSettings): v2.Endpoint["cpu"] {
  const first = readInstance(instanceIds[0] ?? "");
  if (first !== undefined) return { id: first.flavor, vcpuCount: first.cpus, memory: first.memoryGb };
  const id = cpuFlavorIds[0] ?? "cpu3g";
  return { id, vcpuCount, memory: vcpuCount * (gbPerCpu(id) ?? 4) };
}

/** Where an endpoint takes requests; a load-balanced one at its own host name, if there is a domain for these. */
function requestUrls(base: string, { id, settings }: Endpoint, lbDomain: string | undefined): Record<string, string> {
  if (settings.type === "LB") {
    const { protocol, origin } = new URL(base);
    const own = lbDomain === undefined ? `${origin}/lb/${id}` : `${protocol}//${id}.${lbDomain}`;
    return { base: own, health: `${own}/ping` };
  }
  const own = `${base}/${id}`;
  return {
    run: `${own}/run`,
    runSync: `${own}/runsync`,
    status: `${own}/status/{job_id}`,
    stream: `${own}/stream/{job_id}`,
    cancel: `${own}/cancel/{job_id}`,
    retry: `${own}/retry/{job_id}`,
    purgeQueue: `${own}/purge-queue`,
    health: `${own}/health`,
  };
}
