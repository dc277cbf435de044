import * as api from "@millrace/api";
import type { FastifyInstance, FastifyRequest } from "fastify";
import Type from "typebox";
import { invalid } from "../../../errors.js";
import { ownEndpoint } from "../../../operations/endpoints/save-endpoint.js";
import { type ReplayedSettings, replayScaling, showTimings } from "../../../operations/endpoints/timings.js";
import { jobStory, lendInput } from "../../../operations/jobs/job-story.js";
import type { Parts } from "../../../operations/needs.js";
import { idOf, params } from "../../shared/params.js";
import { goneSignal } from "../../shared/replies/replies.js";
import { sendLentReply } from "../../shared/replies/send-lent.js";
import { doc } from "../route-schema.js";

type Query = Readonly<Record<string, string | undefined>>;

const bounds = { workersMin: 10_000, workersMax: 10_000, idleTimeout: 3_600, scalerValue: 1_000_000 } as const;
const least = { workersMin: 0, workersMax: 0, idleTimeout: 1, scalerValue: 1 } as const;
type Bounded = keyof typeof bounds;
const whole = (name: Bounded) =>
  Type.Optional(
    Type.Integer({ minimum: least[name], maximum: bounds[name], description: "Instead of the endpoint's own." }),
  );
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

function settingsIn(query: Query): ReplayedSettings {
  const numbers = (Object.keys(bounds) as Bounded[]).flatMap((name) =>
    query[name] === undefined ? [] : [[name, numberIn(name, query[name])] as const],
  );
  const scalerType = api.scalerTypes.find((name) => name === query.scalerType);
  if (query.scalerType !== undefined && scalerType === undefined)
    throw invalid(`'scalerType' must be ${api.scalerTypes.join(" or ")}.`);
  return { ...Object.fromEntries(numbers), ...(scalerType === undefined ? {} : { scalerType }) };
}

function numberIn(name: Bounded, given: string): number {
  const number = Number(given);
  if (Number.isInteger(number) && number >= least[name] && number <= bounds[name]) return number;
  throw invalid(`'${name}' must be a whole number from ${least[name]} to ${bounds[name]}.`);
}

/** What people ask about one job that its status does not say. */
export function jobStoryRoutes(app: FastifyInstance, parts: Parts): void {
  const endpointOf = (request: FastifyRequest) => ownEndpoint(parts, request.caller, idOf(request, "endpointId"));
  const ids = { params: params("endpointId", "jobId") };
  app.get(
    "/endpoints/:endpointId/jobs/:jobId",
    doc("When and why everything happened to a job", "endpoints", api.JobStory, ids),
    async (request) => jobStory(parts, endpointOf(request), idOf(request, "jobId")),
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
