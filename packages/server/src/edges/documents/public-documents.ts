import * as api from "@millrace/api";
import type { FastifyInstance } from "fastify";
import Type, { type TSchema } from "typebox";
import { jsonType } from "../shared/replies/replies.js";

/** Schemas by the names under which public clients look them up. */
type Named = Readonly<Record<string, TSchema>>;

const lists = (noun: string, one: TSchema): Named => ({ [noun]: one, [`${noun}s`]: Type.Array(one) });

const v1: Named = {
  ...lists("Pod", api.Pod),
  PodCreateInput: api.PodCreate,
  PodUpdateInput: api.PodUpdate,
  PodUpdateInPlaceInput: api.PodUpdate,
  ...lists("Endpoint", api.Endpoint),
  EndpointCreateInput: api.EndpointCreate,
  EndpointUpdateInput: api.EndpointUpdate,
  EndpointUpdateInPlaceInput: api.EndpointUpdate,
  ...lists("Template", api.Template),
  TemplateCreateInput: api.TemplateCreate,
  TemplateUpdateInput: api.TemplateUpdate,
  TemplateUpdateInPlaceInput: api.TemplateUpdate,
  ...lists("NetworkVolume", api.Volume),
  NetworkVolumeCreateInput: api.VolumeCreate,
  NetworkVolumeUpdateInput: api.VolumeUpdate,
  ...lists("ContainerRegistryAuth", api.RegistryAuth),
  ContainerRegistryAuthCreateInput: api.RegistryAuthCreate,
  ...lists("BillingRecord", api.BillingRecord),
  ...lists("NetworkVolumeBillingRecord", api.VolumeBillingRecord),
};

const { v2: rest } = api;
const v2: Named = {
  Endpoint: rest.Endpoint,
  ListEndpointsResponse: rest.Endpoints,
  CreateEndpointRequest: rest.EndpointCreate,
  UpdateEndpointRequest: rest.EndpointUpdate,
  ListEndpointWorkersResponse: rest.WorkerList,
  ListEndpointReleasesResponse: rest.Releases,
  Pod: rest.Pod,
  ListPodsResponse: rest.Pods,
  CreatePodRequest: rest.PodCreate,
  UpdatePodRequest: rest.PodUpdate,
  PodActionRequest: rest.PodAction,
  Template: rest.Template,
  ListTemplatesResponse: rest.Templates,
  CreateTemplateRequest: rest.TemplateCreate,
  UpdateTemplateRequest: rest.TemplateUpdate,
  NetworkVolume: rest.Volume,
  ListNetworkVolumesResponse: rest.Volumes,
  CreateNetworkVolumeRequest: rest.VolumeCreate,
  UpdateNetworkVolumeRequest: rest.VolumeUpdate,
  Registry: api.RegistryAuth,
  ListRegistriesResponse: rest.Registries,
  CreateRegistryRequest: api.RegistryAuthCreate,
  GpuType: rest.GpuType,
  ListGpuTypesResponse: rest.GpuTypes,
  CpuType: rest.CpuType,
  ListCpuTypesResponse: rest.CpuTypes,
  DataCenter: rest.DataCenter,
  ListDataCentersResponse: rest.DataCenters,
  ErrorResponse: rest.Problem,
};

interface Document {
  readonly paths: Readonly<Record<string, unknown>>;
  readonly components: object;
}

/**
 * The OpenAPI documents where public clients look for them, under `/sdk`: the same operations, without the prefix, and
 * with schemas under their public names.
 */
export function publicDocuments(app: FastifyInstance, documents: Readonly<Record<"v1" | "v2", () => object>>): void {
  for (const [version, schemas] of Object.entries({ v1, v2 }) as ["v1" | "v2", Named][]) {
    let page: Buffer | undefined;
    app.get(`/sdk/${version}/openapi.json`, { schema: { hide: true } }, async (_request, reply) => {
      page ??= Buffer.from(JSON.stringify(published(documents[version]() as Document, version, schemas)));
      return reply.header("content-type", jsonType).send(page);
    });
  }
}

function published({ paths, components, ...document }: Document, version: string, schemas: Named): object {
  return {
    ...document,
    servers: [{ url: `/sdk/${version}`, description: "The server that this document comes from" }],
    paths: Object.fromEntries(
      Object.entries(paths).map(([path, item]) => [path.replace(`/${version}/`, "/"), item] as const),
    ),
    components: { ...components, schemas: plain(schemas) },
  };
}

interface Choice {
  readonly type?: unknown;
  readonly const?: unknown;
}

/** Schemas as public clients read them: a choice is an `enum`, and that a field may be null is left out. */
function plain(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value !== "object" || value === null) return value;
  const { anyOf, ...rest } = value as { readonly anyOf?: readonly Choice[] };
  const choices = anyOf?.filter(({ type }) => type !== "null") ?? [];
  if (choices.length === 1) return plain({ ...choices[0], ...rest });
  if (choices.length > 1 && choices.every((each) => typeof each.const === "string"))
    return { ...rest, type: "string", enum: choices.map((each) => each.const) };
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, plain(each)]));
}
