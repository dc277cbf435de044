import * as api from "@millrace/api";
import type { FastifyInstance, FastifyRequest } from "fastify";
import Type from "typebox";
import { routeNotFound } from "../../errors.js";
import { forCaller, publicTemplates, visibleEndpoints, visibleTemplates } from "../../operations/access/visible.js";
import type { EndpointInput } from "../../operations/endpoints/endpoint-settings.js";
import { readHealth } from "../../operations/endpoints/read-health.js";
import {
  createEndpoint,
  deleteEndpoint,
  ownEndpoint,
  updateEndpoint,
} from "../../operations/endpoints/save-endpoint.js";
import type { Parts } from "../../operations/needs.js";
import { showDecisions, showEndpoint, showTemplate } from "../../operations/show-resources.js";
import {
  createTemplate,
  deleteTemplate,
  ownTemplate,
  type TemplateInput,
  updateTemplate,
} from "../../operations/templates/save-template.js";
import { showWorkers } from "../../operations/workers/show-workers.js";
import { ignoreBodies } from "../shared/bodies/bodies.js";
import { takeJson } from "../shared/bodies/json-body.js";
import type { LogRouteParts } from "../shared/logs/follow-log.js";
import { admitCallers } from "../shared/management.js";
import { otherMethods } from "../shared/methods.js";
import { idOf, params } from "../shared/params.js";
import { lendRooms } from "../shared/replies/room.js";
import { sendList } from "../shared/replies/send-list.js";
import { accessReads, accessWrites } from "./access.js";
import { auditRoutes } from "./audit.js";
import { billingRoutes, priceWrites } from "./billing.js";
import { logRoutes } from "./logs.js";
import { eventRoutes } from "./looking/events.js";
import { hostRoutes } from "./looking/hosts.js";
import { jobStoryRoutes, timingRoutes } from "./looking/jobs.js";
import { workerRoutes } from "./looking/workers.js";
import { podReads, podWrites } from "./pods.js";
import { registryAuthReads, registryAuthWrites } from "./registry-auths.js";
import { releaseRoutes } from "./releases.js";
import { deletion, doc, patches, writeErrors } from "./route-schema.js";
import { secretReads, secretWrites } from "./secrets.js";
import { volumeReads, volumeWrites } from "./volumes.js";
import { webhookRoutes } from "./webhooks.js";

type Query = Record<string, string | undefined>;
export interface RestParts extends LogRouteParts {
  /** Under `/sdk`, what public clients rely on wins: deleting an endpoint sets its worker counts to 0 first. */
  readonly isSdk: boolean;
}

const include = Type.Object({
  includeTemplate: Type.Optional(Type.String({ description: "true: include the template." })),
  includeWorkers: Type.Optional(Type.String({ description: "true: include the workers." })),
  includeHealth: Type.Optional(Type.String({ description: "true: include the counts of jobs and workers." })),
});

const alsoTemplates = Type.Object({
  includePublicTemplates: Type.Optional(Type.String({ description: "true: include what other users share." })),
  includeEndpointBoundTemplates: Type.Optional(
    Type.String({ description: "Accepted: templates that endpoints use are always included." }),
  ),
  includeRunpodTemplates: Type.Optional(Type.String({ description: "Accepted: this service brings no templates." })),
});

/** The REST management API: endpoints, templates and network volumes (contract: REST management API). */
export async function restRoutes(app: FastifyInstance, parts: RestParts): Promise<void> {
  app.setSerializerCompiler(() => JSON.stringify);
  const refuseOthers = otherMethods(app);
  admitCallers(app, parts);
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
    secretWrites(scope, parts);
    podWrites(scope, parts);
    priceWrites(scope, parts);
  });
  await app.register(async (scope) => {
    lendRooms(scope, parts);
    ignoreBodies(scope);
    reads(scope, parts);
    workerRoutes(scope, parts);
    releaseRoutes(scope, parts);
    deletes(scope, parts);
    volumeReads(scope, parts);
    registryAuthReads(scope, parts);
    accessReads(scope, parts);
    secretReads(scope, parts);
    podReads(scope, parts);
    billingRoutes(scope, parts);
    auditRoutes(scope, parts);
    webhookRoutes(scope, parts);
  });
  await app.register(async (scope) => {
    ignoreBodies(scope);
    eventRoutes(scope, parts);
    jobStoryRoutes(scope, parts);
    timingRoutes(scope, parts);
    hostRoutes(scope, parts);
    logRoutes(scope, parts); // no room needed: a followed log has a budget of its own
  });
  refuseOthers();
}

async function endpointView(
  parts: Parts,
  { caller, query: asked }: FastifyRequest,
  endpoint: ReturnType<typeof ownEndpoint>,
) {
  const query = asked as Query;
  const template = parts.registry.template(endpoint.settings.templateId);
  return {
    ...forCaller(caller, endpoint, showEndpoint(parts, endpoint)),
    ...(query.includeTemplate === "true" && template
      ? { template: forCaller(caller, template, showTemplate(template)) }
      : {}),
    ...(query.includeWorkers === "true" ? { workers: await showWorkers(parts, caller, endpoint) } : {}),
    ...(query.includeHealth === "true" ? { health: await readHealth(parts, endpoint) } : {}),
  };
}

function endpointWrites(app: FastifyInstance, parts: RestParts): void {
  const reply = { 200: api.Endpoint, ...writeErrors };
  app.post(
    "/endpoints",
    { schema: { summary: "Create an endpoint", tags: ["endpoints"], body: api.EndpointCreate, response: reply } },
    async (request) => showEndpoint(parts, await createEndpoint(parts, request.caller, request.body as EndpointInput)),
  );
  const schema = {
    summary: "Change an endpoint; only the fields sent change, and null clears a field",
    tags: ["endpoints"],
    params: params("endpointId"),
    body: api.EndpointUpdate,
    response: reply,
  };
  patches(app, "/endpoints/:endpointId", schema, async (request) => {
    const endpoint = ownEndpoint(parts, request.caller, idOf(request, "endpointId"));
    return showEndpoint(parts, await updateEndpoint(parts, request.caller, endpoint, request.body as EndpointInput));
  });
}

function templateWrites(app: FastifyInstance, parts: RestParts): void {
  const reply = { 200: api.Template, ...writeErrors };
  app.post(
    "/templates",
    { schema: { summary: "Create a template", tags: ["templates"], body: api.TemplateCreate, response: reply } },
    async (request) => showTemplate(await createTemplate(parts, request.caller, request.body as TemplateInput)),
  );
  const schema = {
    summary: "Change a template; only the fields sent change, and null clears a field",
    tags: ["templates"],
    params: params("templateId"),
    body: api.TemplateUpdate,
    response: reply,
  };
  patches(app, "/templates/:templateId", schema, async (request) => {
    const template = ownTemplate(parts, request.caller, idOf(request, "templateId"));
    return showTemplate(await updateTemplate(parts, request.caller, template, request.body as TemplateInput));
  });
}

function reads(app: FastifyInstance, parts: RestParts): void {
  app.get(
    "/endpoints",
    doc("List endpoints", "endpoints", Type.Array(api.Endpoint), { querystring: include }),
    (request, reply) => {
      return sendList(reply, visibleEndpoints(parts, request.caller), (endpoint) =>
        endpointView(parts, request, endpoint),
      );
    },
  );
  app.get(
    "/endpoints/:endpointId",
    doc("Show an endpoint", "endpoints", api.Endpoint, { params: params("endpointId"), querystring: include }),
    async (request) => endpointView(parts, request, ownEndpoint(parts, request.caller, idOf(request, "endpointId"))),
  );
  app.get(
    "/endpoints/:endpointId/scaling",
    doc(
      "Why the endpoint did or did not scale: its last decisions, newest first",
      "endpoints",
      Type.Array(api.ScalingDecision),
      {
        params: params("endpointId"),
      },
    ),
    async (request) => showDecisions(parts, ownEndpoint(parts, request.caller, idOf(request, "endpointId"))),
  );
  const othersFor = ({ caller, query }: FastifyRequest) =>
    (query as Query).includePublicTemplates === "true"
      ? publicTemplates(parts, caller).filter(({ ownerNo }) => ownerNo !== caller.ownerNo)
      : [];
  app.get(
    "/templates",
    doc("List templates", "templates", Type.Array(api.Template), { querystring: alsoTemplates }),
    (request, reply) => {
      const found = [...visibleTemplates(parts, request.caller), ...othersFor(request)];
      return sendList(reply, found, (template) => forCaller(request.caller, template, showTemplate(template)));
    },
  );
  app.get(
    "/templates/:templateId",
    doc("Show a template", "templates", api.Template, { params: params("templateId"), querystring: alsoTemplates }),
    async (request) => {
      const id = idOf(request, "templateId");
      const shared = othersFor(request).find((template) => template.id === id);
      const template = shared ?? ownTemplate(parts, request.caller, id);
      return forCaller(request.caller, template, showTemplate(template));
    },
  );
}

function deletes(app: FastifyInstance, parts: RestParts): void {
  app.delete(
    "/endpoints/:endpointId",
    deletion("Delete an endpoint", "endpoints", "endpointId"),
    async (request, reply) => {
      await deleteEndpoint(parts, request.caller, ownEndpoint(parts, request.caller, idOf(request, "endpointId")), {
        setToZero: parts.isSdk,
      });
      return reply.code(204).send();
    },
  );
  app.delete(
    "/templates/:templateId",
    deletion("Delete a template", "templates", "templateId"),
    async (request, reply) => {
      await deleteTemplate(parts, request.caller, ownTemplate(parts, request.caller, idOf(request, "templateId")));
      return reply.code(204).send();
    },
  );
}
