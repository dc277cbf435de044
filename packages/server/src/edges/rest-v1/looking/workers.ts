import * as api from "@millrace/api";
import type { FastifyInstance, FastifyRequest } from "fastify";
import Type from "typebox";
import { ownEndpoint } from "../../../operations/endpoints/save-endpoint.js";
import type { Parts } from "../../../operations/needs.js";
import { showColdStarts, showWorker, showWorkers } from "../../../operations/workers/show-workers.js";
import { pauseByHand, stopByHand } from "../../../operations/workers/stop-by-hand.js";
import { idOf, params } from "../../shared/params.js";
import { atOnce, isNow } from "../at-once.js";
import { doc } from "../route-schema.js";

/** Routes about workers: their states, their timelines, and how long they took to start. */
export function workerRoutes(app: FastifyInstance, parts: Parts): void {
  const endpointOf = (request: FastifyRequest) => ownEndpoint(parts, request.caller, idOf(request, "endpointId"));
  const ended = Type.Object({
    ended: Type.Optional(Type.String({ description: "true: include workers that ended in the last 24 hours." })),
  });
  app.get(
    "/endpoints/:endpointId/workers",
    doc("The workers of an endpoint with their timelines, newest first", "workers", Type.Array(api.Worker), {
      params: params("endpointId"),
      querystring: ended,
    }),
    async (request) =>
      showWorkers(parts, request.caller, endpointOf(request), {
        ended: (request.query as { ended?: string }).ended === "true",
      }),
  );
  const changing = { params: params("workerId") };
  app.get(
    "/workers/:workerId",
    doc("One worker with its timeline, until 24 hours after its end", "workers", api.Worker, {
      params: params("workerId"),
    }),
    async (request) => showWorker(parts, request.caller, idOf(request, "workerId")),
  );
  app.post(
    "/workers/:workerId/stop",
    doc("Stop a worker; a busy one finishes its jobs first", "workers", api.Worker, {
      ...changing,
      querystring: atOnce,
    }),
    async (request) => stopByHand(parts, request.caller, idOf(request, "workerId"), { isNow: isNow(request) }),
  );
  app.post(
    "/workers/:workerId/pause",
    doc("Pause an idle worker, with its memory kept", "workers", api.Worker, changing),
    async (request) => pauseByHand(parts, request.caller, idOf(request, "workerId")),
  );
  app.get(
    "/endpoints/:endpointId/cold-starts",
    doc("How long workers took to start: percentiles of each step", "workers", api.ColdStarts, {
      params: params("endpointId"),
    }),
    async (request) => showColdStarts(parts, endpointOf(request)),
  );
}
