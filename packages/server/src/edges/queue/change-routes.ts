import { JobReference, PurgeResult } from "@millrace/api";
import type { FastifyInstance } from "fastify";
import { cancelJob, purgeQueue } from "../../operations/jobs/change-job.js";
import { retryJob } from "../../operations/jobs/retry-job.js";
import type { JobParts } from "../shared/access.js";
import { ignoreBodies } from "../shared/bodies/bodies.js";
import { callerOf } from "../shared/caller.js";
import { sendJson } from "../shared/replies/replies.js";
import { endpointParam, jobIdOf, jobParams, replies } from "./route-schema.js";

/** The routes that cancel, retry and purge jobs. */
export function jobChangeRoutes(app: FastifyInstance, parts: JobParts): void {
  ignoreBodies(app);
  app.post(
    "/:endpointId/cancel/:jobId",
    {
      config: { rated: "cancel", changes: true },
      schema: { summary: "Cancel a waiting or running job", params: jobParams, response: replies(JobReference) },
    },
    async (request, reply) => {
      await cancelJob(parts, request.endpoint, jobIdOf(request));
      return sendJson(reply, JSON.stringify({ id: jobIdOf(request), status: "CANCELLED" }));
    },
  );
  app.post(
    "/:endpointId/retry/:jobId",
    {
      config: { changes: true },
      schema: {
        summary: "Put a FAILED or TIMED_OUT job back into the queue",
        params: jobParams,
        response: replies(JobReference),
      },
    },
    async (request, reply) => {
      await retryJob(parts, request.endpoint, jobIdOf(request));
      return sendJson(reply, JSON.stringify({ id: jobIdOf(request), status: "IN_QUEUE" }));
    },
  );
  app.post(
    "/:endpointId/purge-queue",
    {
      config: { rated: "purge-queue", changes: true },
      schema: { summary: "Cancel all waiting jobs", params: endpointParam, response: replies(PurgeResult) },
    },
    async (request, reply) => {
      const removed = await purgeQueue(parts, callerOf(request, request.caller), request.endpoint);
      return sendJson(reply, JSON.stringify({ removed, status: "completed" }));
    },
  );
}
