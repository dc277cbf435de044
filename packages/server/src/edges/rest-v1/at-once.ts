import type { FastifyRequest } from "fastify";
import Type from "typebox";

/** Of requests that replace or stop workers: whether they wait for the jobs of busy ones. */
export const atOnce = Type.Object({
  now: Type.Optional(
    Type.String({
      description: "true: busy workers are stopped at once; their jobs go back to the queue and run again.",
    }),
  ),
});

export const isNow = (request: FastifyRequest): boolean => (request.query as { now?: string }).now === "true";
