import * as api from "@millrace/api";
import type { FastifyInstance, FastifyRequest } from "fastify";
import Type, { type TSchema } from "typebox";
import { isVisible } from "../../domain/access/key.js";
import { Refusal, routeNotFound } from "../../errors.js";
import { admitToManagement } from "../../operations/access/authenticate.js";
import type { EndpointInput } from "../../operations/endpoints/endpoint-settings.js";
import {
  createEndpoint,
  deleteEndpoint,
  ownEndpoint,
  updateEndpoint,
} from "../../operations/endpoints/save-endpoint.js";
import type { Parts } from "../../operations/needs.js";
import {
  showDecisions,
  showDeliveries,
  showEndpoint,
  showTemplate,
  showVolume,
} from "../../operations/show-resources.js";
import {
  createTemplate,
  deleteTemplate,
  ownTemplate,
  type TemplateInput,
  updateTemplate,
} from "../../operations/templates/save-template.js";
import { createVolume, deleteVolume, ownVolume, updateVolume } from "../../operations/volumes/save-volume.js";
import { showWorkers } from "../../operations/workers/show-workers.js";
import { ignoreBodies } from "../shared/bodies/bodies.js";
import { otherMethods } from "../shared/methods.js";
import { lendRooms } from "../shared/replies/room.js";
import { sendList } from "../shared/replies/send-list.js";
import { accessReads, accessWrites } from "./access.js";
import { takeJson } from "./json-body.js";
import { type LogRouteParts, logRoutes } from "./logs.js";
import { registryAuthReads, registryAuthWrites } from "./registry-auths.js";
import { releaseRoutes } from "./releases.js";
import { deletion, doc, idOf, params, writeErrors } from "./route-schema.js";
import { workerRoutes } from "./workers.js";

type Query = Record<string, string | undefined>;
export interface RestParts extends LogRouteParts {
  /** Under `/sdk`, deleting an endpoint sets its worker counts to 0 first. */
  readonly setToZero: boolean;
}

const include = Type.Object({
  includeTemplate: Type.Optional(Type.String({ description: "true: with the template." })),
  includeWorkers: Type.Optional(Type.String({ description: "true: with the workers." })),
});

/** The REST management API: endpoints, templates and network volumes (contract: REST management API). */
export async function restRoutes(app: FastifyInstance, parts: RestParts): Promise<void> {
  app.setSerializerCompiler(() => JSON.stringify);
  const refuseOthers = otherMethods(app);
  app.addHook("onRequest", async (request) => {
    request.caller = await admitToManagement(parts, request.headers.authorization, request.method !== "GET");
    if (request.headers["content-encoding"] && request.headers["content-encoding"] !== "identity") {
      throw new Refusal("UNSUPPORTED_ENCODING", "Send the body without a content encoding.");
    }
  });
  // for an unknown URL, too, the key is checked first
  app.setNotFoundHandler((request) => {
    throw routeNotFound(request.method, request.url);
  });
  await app.register(async (scope) => {
    lendRooms(scope, parts);
    takeJson(scope);
    endpointWrites(scope, parts);
    templateWrites(scope, parts);
    volumeWrites(scope, parts);
    registryAuthWrites(scope, parts);
    accessWrites(scope, parts);
  });
  await app.register(async (scope) => {
    lendRooms(scope, parts);
    ignoreBodies(scope);
    reads(scope, parts);
    workerRoutes(scope, parts);
    releaseRoutes(scope, parts);
    deletes(scope, parts);
    registryAuthReads(scope, parts);
    accessReads(scope, parts);
  });
  await app.register(async (scope) => {
    ignoreBodies(scope);
    logRoutes(scope, parts); // no room needed: a followed log has a budget of its own
  });
  refuseOthers();
}

/** Registers PATCH and its equivalent, POST to `/update`. */
function patches(
  app: FastifyInstance,
  url: string,
  schema: object,
  handler: (request: FastifyRequest) => Promise<unknown>,
): void {
  app.patch(url, { schema }, handler);
  app.post(`${url}/update`, { schema }, handler);
}

async function endpointView(parts: Parts, endpoint: ReturnType<typeof ownEndpoint>, query: Query) {
  const template = parts.registry.template(endpoint.settings.templateId);
  return {
    ...showEndpoint(parts, endpoint),
    ...(query.includeTemplate === "true" && template ? { template: showTemplate(template) } : {}),
    ...(query.includeWorkers === "true" ? { workers: await showWorkers(parts, endpoint) } : {}),
  };
}

function endpointWrites(app: FastifyInstance, parts: RestParts): void {
  const reply = { 200: api.Endpoint, ...writeErrors };
  app.post(
    "/endpoints",
    { schema: { summary: "Create an endpoint", tags: ["endpoints"], body: api.EndpointCreate, response: reply } },
    async (request) =>
      showEndpoint(
        parts,
        await createEndpoint(parts, request.caller, pick(api.EndpointCreate, request.body) as EndpointInput),
      ),
  );
  const schema = {
    summary: "Change an endpoint: only what is sent; null clears",
    tags: ["endpoints"],
    params: params("endpointId"),
    body: api.EndpointUpdate,
    response: reply,
  };
  patches(app, "/endpoints/:endpointId", schema, async (request) => {
    const endpoint = ownEndpoint(parts, request.caller, idOf(request, "endpointId"));
    return showEndpoint(
      parts,
      await updateEndpoint(parts, request.caller, endpoint, pick(api.EndpointUpdate, request.body) as EndpointInput),
    );
  });
}

function templateWrites(app: FastifyInstance, parts: RestParts): void {
  const reply = { 200: api.Template, ...writeErrors };
  const known = (schema: TSchema, body: unknown) => pick(schema, body) as TemplateInput;
  app.post(
    "/templates",
    { schema: { summary: "Create a template", tags: ["templates"], body: api.TemplateCreate, response: reply } },
    async (request) =>
      showTemplate(await createTemplate(parts, request.caller, known(api.TemplateCreate, request.body))),
  );
  const schema = {
    summary: "Change a template: only what is sent; null clears",
    tags: ["templates"],
    params: params("templateId"),
    body: api.TemplateUpdate,
    response: reply,
  };
  patches(app, "/templates/:templateId", schema, async (request) => {
    const template = ownTemplate(parts, request.caller, idOf(request, "templateId"));
    return showTemplate(await updateTemplate(parts, request.caller, template, known(api.TemplateUpdate, request.body)));
  });
}

/** The fields that a schema names, and no others. */
function pick(schema: TSchema, body: unknown): Record<string, unknown> {
  const names = Object.keys((schema as unknown as { properties: object }).properties);
  const given = body as Record<string, unknown>;
  return Object.fromEntries(names.filter((name) => Object.hasOwn(given, name)).map((name) => [name, given[name]]));
}

function volumeWrites(app: FastifyInstance, parts: RestParts): void {
  const reply = { 200: api.Volume, ...writeErrors };
  app.post(
    "/networkvolumes",
    {
      schema: {
        summary: "Create a network volume",
        tags: ["network volumes"],
        body: api.VolumeCreate,
        response: reply,
      },
    },
    async (request) => showVolume(parts, await createVolume(parts, request.caller, request.body as api.VolumeCreate)),
  );
  const schema = {
    summary: "Rename or grow a network volume",
    tags: ["network volumes"],
    params: params("networkVolumeId"),
    body: api.VolumeUpdate,
    response: reply,
  };
  patches(app, "/networkvolumes/:networkVolumeId", schema, async (request) => {
    const volume = ownVolume(parts, request.caller, idOf(request, "networkVolumeId"));
    return showVolume(parts, await updateVolume(parts, volume, pick(api.VolumeUpdate, request.body)));
  });
}

function reads(app: FastifyInstance, parts: RestParts): void {
  const { registry } = parts;
  const mine = <T extends { ownerNo: number }>(request: FastifyRequest, all: readonly T[]) =>
    all.filter((each) => each.ownerNo === request.caller.ownerNo);
  app.get(
    "/endpoints",
    doc("List endpoints", "endpoints", Type.Array(api.Endpoint), { querystring: include }),
    (request, reply) => {
      const live = registry.endpoints().filter((endpoint) => isVisible(request.caller, endpoint));
      return sendList(reply, live, (endpoint) => endpointView(parts, endpoint, request.query as Query));
    },
  );
  app.get(
    "/endpoints/:endpointId",
    doc("Show an endpoint", "endpoints", api.Endpoint, { params: params("endpointId"), querystring: include }),
    async (request) =>
      endpointView(parts, ownEndpoint(parts, request.caller, idOf(request, "endpointId")), request.query as Query),
  );
  app.get(
    "/endpoints/:endpointId/scaling",
    doc(
      "Why it did, or did not, scale: the last decisions, newest first",
      "endpoints",
      Type.Array(api.ScalingDecision),
      {
        params: params("endpointId"),
      },
    ),
    async (request) => showDecisions(parts, ownEndpoint(parts, request.caller, idOf(request, "endpointId"))),
  );
  app.get("/templates", doc("List templates", "templates", Type.Array(api.Template)), (request, reply) =>
    sendList(reply, mine(request, registry.templates()), showTemplate),
  );
  app.get(
    "/templates/:templateId",
    doc("Show a template", "templates", api.Template, { params: params("templateId") }),
    async (request) => showTemplate(ownTemplate(parts, request.caller, idOf(request, "templateId"))),
  );
  app.get("/networkvolumes", doc("List network volumes", "network volumes", Type.Array(api.Volume)), (request, reply) =>
    sendList(reply, mine(request, registry.volumes()), (volume) => showVolume(parts, volume)),
  );
  app.get(
    "/networkvolumes/:networkVolumeId",
    doc("Show a network volume", "network volumes", api.Volume, { params: params("networkVolumeId") }),
    async (request) => showVolume(parts, ownVolume(parts, request.caller, idOf(request, "networkVolumeId"))),
  );
  app.get(
    "/webhooks/deliveries",
    doc("Webhook deliveries with their attempts, newest first", "webhooks", Type.Array(api.WebhookDelivery), {
      querystring: Type.Object({ jobId: Type.Optional(Type.String()) }),
    }),
    async (request) => showDeliveries(parts, request.caller, (request.query as Query).jobId),
  );
  app.get(
    "/webhooks/secret",
    doc("The secret that signs your webhooks", "webhooks", Type.Object({ secret: Type.String() })),
    async (request) => {
      if (request.caller.scope.kind !== "everything")
        throw new Refusal("UNAUTHORIZED", "This key may not read the secret.");
      return { secret: parts.vault.open(registry.user(request.caller.ownerNo)?.webhookSecret ?? "") };
    },
  );
}

function deletes(app: FastifyInstance, parts: RestParts): void {
  app.delete(
    "/endpoints/:endpointId",
    deletion("Delete an endpoint", "endpoints", "endpointId"),
    async (request, reply) => {
      await deleteEndpoint(parts, ownEndpoint(parts, request.caller, idOf(request, "endpointId")), parts);
      return reply.code(204).send();
    },
  );
  app.delete(
    "/templates/:templateId",
    deletion("Delete a template", "templates", "templateId"),
    async (request, reply) => {
      await deleteTemplate(parts, ownTemplate(parts, request.caller, idOf(request, "templateId")));
      return reply.code(204).send();
    },
  );
  app.delete(
    "/networkvolumes/:networkVolumeId",
    deletion("Delete a network volume and its files", "network volumes", "networkVolumeId"),
    async (request, reply) => {
      await deleteVolume(parts, request.caller, idOf(request, "networkVolumeId"));
      return reply.code(204).send();
    },
  );
}
