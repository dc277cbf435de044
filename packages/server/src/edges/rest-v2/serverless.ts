import { v2 } from "@millrace/api";
import type { FastifyInstance, FastifyRequest } from "fastify";
import { releaseNumbers } from "../../domain/endpoints/release.js";
import { Refusal } from "../../errors.js";
import { visibleEndpoints } from "../../operations/access/visible.js";
import { deleteEndpoint, ownEndpoint } from "../../operations/endpoints/save-endpoint.js";
import { createWithTemplate, updateWithTemplate } from "../../operations/endpoints/save-with-template.js";
import type { Parts } from "../../operations/needs.js";
import type { LogRouteParts } from "../shared/logs/follow-log.js";
import { idOf } from "../shared/params.js";
import { sendList } from "../shared/replies/send-list.js";
import { endpointInput, endpointView } from "./endpoint-shape.js";
import { releaseView, rolloutView } from "./releases.js";
import type { RequestQuota } from "./request-quota.js";
import { route } from "./route-schema.js";
import { workersView } from "./workers.js";

export interface RestV2Parts extends LogRouteParts {
  /** The domain under which load-balanced endpoints have host names of their own. */
  readonly lbDomain?: string | undefined;
  /** Absent: requests are not limited. */
  readonly quota?: RequestQuota | undefined;
}

const tag = "serverless";
const one = { tag, names: ["endpointId"] };
/** Fields that an endpoint of REST v2 has unless they are sent. */
const defaults = { workers: { min: 0, max: 3, idleTimeout: 10 }, timeout: 300_000 };

/** Endpoints: the routes that take a body. */
export function serverlessWrites(app: FastifyInstance, parts: RestV2Parts): void {
  app.post(
    "/serverless",
    route({
      operationId: "createEndpoint",
      summary: "Create an endpoint",
      tag,
      body: v2.EndpointCreate,
      reply: v2.Endpoint,
      status: 201,
    }),
    async (request, reply) => {
      const body = request.body as v2.EndpointCreate;
      const given = endpointInput({ ...defaults, ...body, workers: { ...defaults.workers, ...body.workers } });
      const endpoint = await createWithTemplate(parts, request.caller, given);
      return reply.code(201).send(endpointView(parts, request, endpoint));
    },
  );
  app.patch(
    "/serverless/:endpointId",
    route({
      ...one,
      operationId: "updateEndpoint",
      summary: "Change an endpoint; only the fields sent change",
      body: v2.EndpointUpdate,
      reply: v2.Endpoint,
    }),
    async (request) => {
      const given = endpointInput(request.body as v2.EndpointUpdate);
      return endpointView(parts, request, await updateWithTemplate(parts, request.caller, own(parts, request), given));
    },
  );
}

/** Endpoints: the routes without a body. */
export function serverlessReads(app: FastifyInstance, parts: RestV2Parts): void {
  app.get(
    "/serverless",
    route({ operationId: "listEndpoints", summary: "List endpoints", tag, reply: v2.Endpoints }),
    (request, reply) =>
      sendList(
        reply,
        visibleEndpoints(parts, request.caller),
        (endpoint) => endpointView(parts, request, endpoint),
        "endpoints",
      ),
  );
  app.get(
    "/serverless/:endpointId",
    route({ ...one, operationId: "getEndpoint", summary: "Show an endpoint", reply: v2.Endpoint }),
    async (request) => endpointView(parts, request, own(parts, request)),
  );
  app.delete(
    "/serverless/:endpointId",
    route({
      ...one,
      operationId: "deleteEndpoint",
      summary: "Delete an endpoint: its workers stop, its jobs are cancelled",
    }),
    async (request, reply) => {
      await deleteEndpoint(parts, request.caller, own(parts, request), { setToZero: true });
      return reply.code(204).send();
    },
  );
  app.get(
    "/serverless/:endpointId/workers",
    route({ ...one, operationId: "listEndpointWorkers", summary: "The workers of an endpoint", reply: v2.WorkerList }),
    async (request) => workersView(parts, request.caller, own(parts, request)),
  );
  app.get(
    "/serverless/:endpointId/releases",
    route({
      ...one,
      operationId: "listEndpointReleases",
      summary: "The versions of an endpoint, newest first",
      reply: v2.Releases,
    }),
    async (request, reply) => {
      const endpoint = own(parts, request);
      const numbers = releaseNumbers(endpoint);
      const pairs = numbers.map((version, at) => ({ version, before: numbers[at + 1] }));
      const show = (pair: (typeof pairs)[number]) => releaseView(parts, request.caller, endpoint, pair);
      return sendList(reply, pairs, show, "releases", rolloutView(parts, endpoint));
    },
  );
}

/** Builds from a repository, of which there are none here. */
export function buildReads(app: FastifyInstance, parts: Parts): void {
  app.get("/serverless/:endpointId/builds", { schema: { hide: true } }, async (request) => {
    own(parts, request);
    return { builds: [] };
  });
  app.get("/serverless/:endpointId/builds/:absentId", { schema: { hide: true } }, async (request) => {
    own(parts, request);
    throw new Refusal("NOT_FOUND", "Endpoints here are not built from a repository.");
  });
}

const own = (parts: Parts, request: FastifyRequest) => ownEndpoint(parts, request.caller, idOf(request, "endpointId"));
