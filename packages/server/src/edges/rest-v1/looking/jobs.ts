import * as api from "@millrace/api";
import type { FastifyInstance, FastifyRequest } from "fastify";
import Type from "typebox";
import { ownEndpoint } from "../../../operations/endpoints/save-endpoint.js";
import { type ReplayedSettings, replayScaling, showTimings } from "../../../operations/endpoints/timings.js";
import { jobStory, lendInput } from "../../../operations/jobs/job-story.js";
import type { Parts } from "../../../operations/needs.js";
import { idOf, params } from "../../shared/params.js";
import { goneSignal } from "../../shared/replies/replies.js";
import { sendLentReply } from "../../shared/replies/send-lent.js";
import { doc } from "../route-schema.js";

type Query = Readonly<Record<string, string | undefined>>;

/** What a what-if may set, each with its values as a pattern and in words. */
const numbers = {
  workersMin: ["^(\\d{1,4}|10000)$", "a whole number from 0 to 10000"],
  workersMax: ["^(\\d{1,4}|10000)$", "a whole number from 0 to 10000"],
  idleTimeout: ["^([1-9]\\d{0,2}|[12]\\d{3}|3[0-5]\\d{2}|3600)$", "a whole number from 1 to 3600"],
  scalerValue: ["^([1-9]\\d{0,5}|1000000)$", "a whole number from 1 to 1000000"],
} as const;
type NumberName = keyof typeof numbers;
const whole = (name: NumberName) => {
  const [pattern, title] = numbers[name];
  return Type.Optional(Type.String({ pattern, title, description: `Instead of the endpoint's own: ${title}.` }));
};
const changed = Type.Object({
  workersMin: whole("workersMin"),
  workersMax: whole("workersMax"),
  idleTimeout: whole("idleTimeout"),
  scalerValue: whole("scalerValue"),
  scalerType: Type.Optional(
    Type.Union(
      api.scalerTypes.map((name) => Type.Literal(name)),
      { description: "Instead of the endpoint's own." },
    ),
  ),
});

/** How long jobs took, and what other settings would have changed. */
export function timingRoutes(app: FastifyInstance, parts: Parts): void {
  const endpointOf = (request: FastifyRequest) => ownEndpoint(parts, request.caller, idOf(request, "endpointId"));
  app.get(
    "/endpoints/:endpointId/timings",
    doc("How long jobs waited and ran: percentiles, and medians over time", "endpoints", api.Timings, {
      params: params("endpointId"),
    }),
    async (request) => showTimings(parts, endpointOf(request)),
  );
  app.get(
    "/endpoints/:endpointId/scaling/replay",
    doc("What the scaler would have done with other settings", "endpoints", api.ScalingReplay, {
      params: params("endpointId"),
      querystring: changed,
    }),
    async (request) => replayScaling(parts, endpointOf(request), settingsIn(request.query as Query)),
  );
}

function settingsIn({ scalerType, ...query }: Query): ReplayedSettings {
  const names = (Object.keys(numbers) as NumberName[]).filter((name) => query[name] !== undefined);
  return {
    ...Object.fromEntries(names.map((name) => [name, Number(query[name])])),
    ...(scalerType === undefined ? {} : { scalerType: scalerType as (typeof api.scalerTypes)[number] }),
  };
}

/** What people ask about one job that its status does not say. */
export function jobStoryRoutes(app: FastifyInstance, parts: Parts): void {
  const endpointOf = (request: FastifyRequest) => ownEndpoint(parts, request.caller, idOf(request, "endpointId"));
  const ids = { params: params("endpointId", "jobId") };
  app.get(
    "/endpoints/:endpointId/jobs/:jobId",
    doc("When and why everything happened to a job", "endpoints", api.JobStory, ids),
    async (request) => jobStory(parts, request.caller, endpointOf(request), idOf(request, "jobId")),
  );
  app.get(
    "/endpoints/:endpointId/jobs/:jobId/input",
    doc("A job's input, as it was sent", "endpoints", Type.Object({}, { additionalProperties: true }), ids),
    async (request, reply) =>
      sendLentReply(
        parts,
        reply,
        await lendInput(parts, endpointOf(request), idOf(request, "jobId"), goneSignal(reply)),
      ),
  );
}
