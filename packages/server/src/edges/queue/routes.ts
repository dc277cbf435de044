import {
  ErrorBody,
  HealthBody,
  JobReference,
  jobStatuses,
  MetricsBody,
  RequestList,
  StatusBody,
  StreamArray,
  Submission,
} from "@millrace/api";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import Type from "typebox";
import type { JobStatus } from "../../domain/jobs/job.js";
import { goneText } from "../../domain/jobs/status-text.js";
import { invalid, Refusal } from "../../errors.js";
import type { ReceivedText } from "../../json/json.js";
import { limits } from "../../limits/index.js";
import { readHealth, readMetrics } from "../../operations/endpoints/read-health.js";
import { setTtl } from "../../operations/jobs/change-job.js";
import { listJobs } from "../../operations/jobs/list-jobs.js";
import { awaitJob, findJob } from "../../operations/jobs/read-job.js";
import { submitJob } from "../../operations/jobs/submit-job.js";
import type { JobParts } from "../shared/access.js";
import { admitToJobs } from "../shared/access.js";
import { countBodies, ignoreBodies, takeBytes } from "../shared/bodies/bodies.js";
import { nameIgnored } from "../shared/bodies/json-body.js";
import { otherMethods } from "../shared/methods.js";
import { cursorPattern, readCursor, writeCursor } from "../shared/replies/cursor.js";
import { goneSignal, sendJson } from "../shared/replies/replies.js";
import { askedIn, sendLentReply, sendStatus } from "../shared/replies/send-lent.js";
import { traceparentFor } from "../shared/traceparent.js";
import { readClamped } from "../shared/wait.js";
import { jobChangeRoutes } from "./change-routes.js";
import { endpointParam, jobIdOf, jobParams, replies } from "./route-schema.js";
import { streamRoute } from "./stream.js";

type Query = Record<string, string | undefined>;
const both: ["GET", "POST"] = ["GET", "POST"];

const waitQuery = Type.Object({
  wait: Type.Optional(
    Type.Integer({ minimum: limits.waitMsMin, maximum: limits.waitMsMax, description: "Milliseconds to wait." }),
  ),
});
const clampedWait = (min: number, max: number) =>
  Type.Object({
    wait: Type.Optional(Type.Number({ description: `Milliseconds to wait, brought into ${min} to ${max}.` })),
  });

/** The queue API under one prefix; `envelope`: whether `/stream` wraps its chunks in an object there. */
export async function jobRoutes(app: FastifyInstance, parts: JobParts & { envelope: boolean }): Promise<void> {
  // schemas are only for the OpenAPI document: bodies are checked where they are read
  app.setValidatorCompiler(() => () => true);
  app.setSerializerCompiler(() => JSON.stringify);
  const refuseOthers = otherMethods(app);
  app.addHook("onRequest", (request, reply) => admitToJobs(parts, request, reply));
  await app.register(async (scope) => submitRoutes(scope, parts));
  await app.register(async (scope) => jobReadRoutes(scope, parts));
  await app.register(async (scope) => jobChangeRoutes(scope, parts));
  refuseOthers();
}

function submitRoutes(app: FastifyInstance, parts: JobParts): void {
  takeBytes(app);
  countBodies(app, "clients");
  const headers = Type.Object({
    "idempotency-key": Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: limits.idempotencyKeyCharsMax,
        pattern: "^[\\x21-\\x7e]+$",
        description: "The same key gives the same job for 24 hours. Visible ASCII.",
      }),
    ),
  });
  app.post(
    "/:endpointId/run",
    {
      bodyLimit: limits.runBytesMax,
      config: { rated: "run", changes: true },
      schema: {
        summary: "Submit a job",
        params: endpointParam,
        headers,
        body: Submission,
        response: { ...replies(JobReference), 413: ErrorBody, 507: ErrorBody },
      },
    },
    async (request, reply) => {
      const { jobId, known } = await submit(parts, request, reply, { route: "run", waitMs: undefined });
      if (!known) return sendJson(reply, `{"id":"${jobId}","status":"IN_QUEUE"}`);
      const job = await parts.reader.find({ endpointNo: request.endpoint.no, jobId, now: parts.clock.now() });
      return sendJson(reply, job ? `{"id":"${jobId}","status":"${job.status}"}` : goneText(known));
    },
  );
  app.post(
    "/:endpointId/runsync",
    {
      bodyLimit: limits.runsyncBytesMax,
      config: { rated: "runsync", changes: true },
      schema: {
        summary: "Submit a job and wait for its result",
        params: endpointParam,
        headers,
        querystring: waitQuery,
        body: Submission,
        response: { ...replies(StatusBody), 413: ErrorBody, 507: ErrorBody },
      },
    },
    async (request, reply) => {
      const waitMs = readWait(request.query as Query);
      const { jobId, known } = await submit(parts, request, reply, { route: "runsync", waitMs });
      try {
        const signal = goneSignal(reply);
        const job = await awaitJob(parts, request.endpoint, jobId, waitMs ?? limits.waitMsDefault, signal);
        return await sendStatus(parts, reply, job, signal);
      } catch (error) {
        if (known && error instanceof Refusal && error.code === "JOB_NOT_FOUND")
          return sendJson(reply, goneText(known));
        throw error;
      }
    },
  );
}

async function submit(
  parts: JobParts,
  request: FastifyRequest,
  reply: FastifyReply,
  asked: { route: "run" | "runsync"; waitMs: number | undefined },
) {
  const key = request.headers["idempotency-key"];
  const submitted = await submitJob(parts, {
    endpoint: request.endpoint,
    ...asked,
    body: request.body as ReceivedText,
    idempotencyKey: key === undefined ? undefined : String(key),
    requestId: request.id,
    traceparent: traceparentFor(parts, request),
  });
  nameIgnored(reply, submitted.ignored.names, submitted.ignored.count);
  request.countedBody?.release();
  request.body = undefined; // a long wait for the result must not keep it in memory
  return submitted;
}

function readWait(query: Query): number | undefined {
  if (query.wait === undefined) return undefined;
  const waitMs = Number(query.wait);
  if (!Number.isInteger(waitMs) || waitMs < limits.waitMsMin || waitMs > limits.waitMsMax) {
    throw invalid(`'wait' must be a whole number of milliseconds from ${limits.waitMsMin} to ${limits.waitMsMax}.`);
  }
  return waitMs;
}

function jobReadRoutes(app: FastifyInstance, parts: JobParts & { envelope?: boolean }): void {
  ignoreBodies(app);
  app.route({
    method: both,
    url: "/:endpointId/status/:jobId",
    config: { rated: "status" },
    schema: {
      summary: "A job's status and output",
      params: jobParams,
      querystring: Type.Object({
        ttl: Type.Optional(
          Type.Integer({
            minimum: limits.ttlMsMin,
            maximum: limits.ttlMsMax,
            description: "Sets the job's ttl, in milliseconds from its submission.",
          }),
        ),
      }),
      response: replies(StatusBody),
    },
    handler: async (request, reply) => {
      const { ttl } = request.query as Query;
      if (ttl !== undefined) await setTtl(parts, request.endpoint, jobIdOf(request), Number(ttl));
      return sendStatus(parts, reply, await findJob(parts, request.endpoint, jobIdOf(request)));
    },
  });
  app.route({
    method: both,
    url: "/:endpointId/status-sync/:jobId",
    config: { rated: "status" },
    schema: {
      summary: "A job's status, once it is final",
      params: jobParams,
      querystring: clampedWait(limits.waitMsMin, limits.waitMsMax),
      response: replies(StatusBody),
    },
    handler: async (request, reply) => {
      const asked = (request.query as Query).wait;
      const waitMs = readClamped(asked, limits.waitMsDefault, limits.waitMsMin, limits.waitMsMax);
      const gone = goneSignal(reply);
      return sendStatus(parts, reply, await awaitJob(parts, request.endpoint, jobIdOf(request), waitMs, gone), gone);
    },
  });
  app.route({
    method: both,
    url: "/:endpointId/stream/:jobId",
    config: { rated: "stream" },
    schema: {
      summary: "The chunks not yet handed out; as server-sent events with Accept: text/event-stream",
      params: jobParams,
      querystring: clampedWait(0, limits.streamHoldMsMax),
      response: replies(StreamArray),
    },
    handler: streamRoute(parts, parts.envelope === true),
  });
  app.get(
    "/:endpointId/health",
    {
      config: { balanced: true },
      schema: { summary: "Counts of jobs and workers", params: endpointParam, response: replies(HealthBody) },
    },
    async (request, reply) => sendJson(reply, JSON.stringify(await readHealth(parts, request.endpoint))),
  );
  app.get(
    "/:endpointId/metrics",
    {
      config: { balanced: true },
      schema: {
        summary: "Counts of jobs and workers, and the ids of the workers that are ready",
        params: endpointParam,
        response: replies(MetricsBody),
      },
    },
    async (request, reply) => sendJson(reply, JSON.stringify(await readMetrics(parts, request.endpoint))),
  );
  app.get(
    "/:endpointId/requests",
    {
      config: { rated: "requests" },
      schema: {
        summary: "Jobs, newest first",
        params: endpointParam,
        querystring: Type.Object({
          status: Type.Optional(Type.Union(jobStatuses.map((name) => Type.Literal(name)))),
          limit: Type.Optional(Type.Integer({ minimum: 1, maximum: limits.requestsPageMax })),
          cursor: Type.Optional(Type.String({ pattern: cursorPattern, description: "The nextCursor of a reply." })),
        }),
        response: replies(RequestList),
      },
    },
    async (request, reply) => {
      const gone = goneSignal(reply);
      const list = `requests ${request.endpoint.id}`;
      const { cursor: given, ...query } = request.query as Query;
      const beforeNo = readCursor(parts, list, given);
      const page = { ...readPage(query), ...(beforeNo === undefined ? {} : { beforeNo }) };
      const { pieces, nextNo, ...lent } = await listJobs(parts, askedIn(request), page, gone);
      const cursor = nextNo === undefined ? "" : `,"nextCursor":"${writeCursor(parts, list, nextNo)}"`;
      return sendLentReply(parts, reply, { ...lent, pieces: ['{"requests":[', ...pieces, `]${cursor}}`] });
    },
  );
}

function readPage({ status, limit = String(limits.requestsPageDefault) }: Query) {
  if (status !== undefined && !(jobStatuses as readonly string[]).includes(status)) {
    throw invalid(`'status' must be one of ${jobStatuses.join(", ")}.`);
  }
  const count = Number(limit);
  if (!Number.isInteger(count) || count < 1 || count > limits.requestsPageMax) {
    throw invalid(`'limit' must be a whole number from 1 to ${limits.requestsPageMax}.`);
  }
  return {
    limit: count,
    ...(status === undefined ? {} : { status: status as JobStatus }),
  };
}
