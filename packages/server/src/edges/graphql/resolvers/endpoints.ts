import type { Endpoint } from "../../../domain/endpoints/endpoint.js";
import { invalid } from "../../../errors.js";
import { forCaller, volumeFor } from "../../../operations/access/visible.js";
import type { EndpointInput } from "../../../operations/endpoints/endpoint-settings.js";
import {
  createEndpoint,
  deleteEndpoint,
  ownEndpoint,
  updateEndpoint,
} from "../../../operations/endpoints/save-endpoint.js";
import { createWithTemplate, updateWithTemplate } from "../../../operations/endpoints/save-with-template.js";
import { showEndpoint, showVolume } from "../../../operations/show-resources.js";
import { showWorkers } from "../../../operations/workers/show-workers.js";
import { type Context, entriesOf, type Fields, fromPairs, missingInput, sent, toPairs } from "./context.js";
import { templateInput, templateView } from "./templates.js";

export function endpointView(context: Context, endpoint: Endpoint) {
  const { parts, caller } = context;
  const { registry } = parts;
  const shown = forCaller(caller, endpoint, showEndpoint(parts, endpoint));
  const { env, allowedCudaVersions, networkVolumeIds, minCudaVersion, ...rest } = shown;
  const template = registry.template(endpoint.settings.templateId);
  const volume = registry.volume(networkVolumeIds[0] ?? "");
  return {
    ...rest,
    env: toPairs(env),
    allowedCudaVersions: allowedCudaVersions?.join(",") ?? null,
    minCudaVersion: minCudaVersion || null,
    workersStandby: 0,
    template: template && templateView(context, template),
    networkVolumeIds: networkVolumeIds.map((id) => ({
      networkVolumeId: id,
      dataCenterId: registry.volume(id)?.dataCenterId ?? null,
    })),
    networkVolume: volume && volumeFor(caller, showVolume(parts, volume)),
    pods: async (_: unknown, { answer }: Context) =>
      answer.list(await showWorkers(parts, caller, endpoint), (pod) => pod),
    modelReferences: [],
    compliance: [],
  };
}

interface VolumeRef {
  readonly networkVolumeId?: string;
  readonly volumeId?: string;
}

/** Network volumes, of which clients send the ids in objects of different kinds. */
const volumeIds = ({ networkVolumeIds, volumes }: Fields) =>
  ((networkVolumeIds ?? volumes) as readonly VolumeRef[] | null | undefined)?.flatMap(
    ({ networkVolumeId, volumeId }) => networkVolumeId ?? volumeId ?? [],
  );

/** Empty strings mean none; on modify they clear `locations` and `networkVolumeId`, and leave the rest as it is. */
function endpointInput(input: Fields): EndpointInput {
  const { name, templateId, type, gpuIds, gpuCount, instanceIds, computeType, idleTimeout, locations } = input;
  const { flashBootType, scalerType, scalerValue, workersMin, workersMax, executionTimeoutMs } = input;
  const { env, allowedCudaVersions, minCudaVersion, networkVolumeId, place, podClass } = input;
  const isCpu = Array.isArray(instanceIds) && instanceIds.length > 0;
  return sent({
    name,
    templateId,
    type,
    gpuIds,
    gpuCount,
    instanceIds: instanceIds ?? undefined,
    computeType: computeType || (isCpu ? "CPU" : undefined),
    idleTimeout,
    locations,
    flashBootType,
    scalerType,
    scalerValue,
    workersMin,
    workersMax,
    executionTimeoutMs,
    minCudaVersion,
    place: place === "" ? null : place,
    podClass: podClass === "" ? null : podClass,
    networkVolumeId,
    networkVolumeIds: volumeIds(input),
    env: env === undefined ? undefined : (fromPairs(env as Parameters<typeof fromPairs>[0]) ?? null),
    allowedCudaVersions: allowedCudaVersions === undefined ? undefined : entriesOf(allowedCudaVersions as string),
  });
}

async function saveEndpoint({ input }: { input: Fields }, context: Context) {
  const { parts, caller } = context;
  const endpoint = endpointInput(input);
  const template = input.template ? templateInput(input.template as Fields) : undefined;
  if (template && input.templateId) throw invalid("Send either 'templateId' or 'template', not both.");
  if (input.id) {
    const own = ownEndpoint(parts, caller, input.id as string);
    const saved = template
      ? updateWithTemplate(parts, caller, own, { endpoint, template })
      : updateEndpoint(parts, caller, own, endpoint);
    return endpointView(context, await saved);
  }
  if (!input.name) throw invalid("'name' is required to create an endpoint.");
  if (!template && !input.templateId) throw invalid("'templateId' is required to create an endpoint.");
  if (!input.gpuIds && endpoint.computeType !== "CPU") throw invalid("'gpuIds' is required to create an endpoint.");
  const made = template
    ? createWithTemplate(parts, caller, { endpoint, template })
    : createEndpoint(parts, caller, endpoint);
  return endpointView(context, await made);
}

async function removeEndpoint({ id }: { id: string }, { parts, caller }: Context) {
  await deleteEndpoint(parts, caller, ownEndpoint(parts, caller, id), parts);
  return null;
}

async function updateEndpointTemplate(
  { input }: { input?: { endpointId: string; templateId: string } | null },
  context: Context,
) {
  if (!input) throw missingInput();
  const { parts, caller } = context;
  const endpoint = ownEndpoint(parts, caller, input.endpointId);
  return endpointView(context, await updateEndpoint(parts, caller, endpoint, { templateId: input.templateId }));
}

export const endpointResolvers = { saveEndpoint, deleteEndpoint: removeEndpoint, updateEndpointTemplate };
