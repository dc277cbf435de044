import { ErrorBody } from "@millrace/api";
import type { FastifyRequest } from "fastify";
import Type, { type TSchema } from "typebox";

/** Parameters in the URLs of the queue API. */
export const endpointParam = Type.Object({ endpointId: Type.String({ description: "The endpoint's id." }) });
export const jobParams = Type.Object({
  endpointId: Type.String(),
  jobId: Type.String({ description: "The job's id." }),
});
const errorReplies = {
  400: ErrorBody,
  401: ErrorBody,
  404: ErrorBody,
  415: ErrorBody,
  429: ErrorBody,
  500: ErrorBody,
  503: ErrorBody,
};
/** A route's reply, and the refusals that every route has. */
export const replies = (schema: TSchema) => ({ 200: schema, ...errorReplies });

/** The id of the job in the URL. */
export const jobIdOf = (request: FastifyRequest) => (request.params as { jobId: string }).jobId;
