import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { Signal } from "../../clock.js";
import { Refusal, unauthorized } from "../../errors.js";
import { limits } from "../../limits/index.js";
import { hasSecret } from "../../operations/access/authenticate.js";
import { appendChunk, finishJob, finishJobs, type Word } from "../../operations/jobs/finish-job.js";
import { lendJobs, returnJobs, takeJobs, tookOver } from "../../operations/jobs/take-jobs.js";
import type { LiveWorker, Needs, Parts } from "../../operations/needs.js";
import { awaitStops, hearPing, hearUnhealthy } from "../../operations/workers/hear-ping.js";
import { countBodies, takeWords } from "../shared/bodies/bodies.js";
import { goneSignal, isGone, sendJson, wasWritten } from "../shared/replies/replies.js";
import { sendLentReply } from "../shared/replies/send-lent.js";
import { onceHeard } from "./repeats.js";

type Query = Record<string, string | undefined>;
interface Params {
  readonly endpointId: string;
  readonly workerId: string;
  readonly jobId: string;
}

/**
 * The worker whose secret came with the call, in the URL or bare in the header. Anything else in the header is ignored.
 */
async function workerOf(
  { registry, vault }: Needs<"registry" | "vault">,
  request: FastifyRequest,
): Promise<LiveWorker> {
  const { endpointId, workerId } = request.params as Params;
  const worker = await registry.known("worker", workerId, () => {
    const found = registry.worker(workerId);
    return found?.row.secretHash === undefined ? undefined : found;
  });
  const endpoint = registry.endpoint(endpointId);
  if (!worker || !endpoint || worker.row.endpointNo !== endpoint.no) throw unknownWorker();
  if (!hasSecret({ vault }, worker, request.headers.authorization, (request.query as Query).token))
    throw unknownWorker();
  return worker;
}
const unknownWorker = () => unauthorized("This is not the secret of any worker here.");

const isLive = (worker: LiveWorker) => worker.row.endedAt === undefined;

/** The worker protocol. Results get 200 whatever they contain, 503 if the store cannot take them, and never 4xx. */
export async function workerRoutes(app: FastifyInstance, parts: Parts): Promise<void> {
  await app.register(async (scope) => takeRoutes(scope, parts));
  await app.register(async (scope) => wordRoutes(scope, parts));
}

function takeRoutes(app: FastifyInstance, parts: Parts): void {
  app.get("/:endpointId/job-take/:workerId", (request, reply) => take(parts, request, reply, 1, false));
  app.get("/:endpointId/job-take-batch/:workerId", (request, reply) => {
    const asked = Number((request.query as Query).batch_size ?? 1);
    const count = Number.isInteger(asked) && asked > 0 ? Math.min(asked, limits.takeBatchMax) : 1;
    return take(parts, request, reply, count, true);
  });
  app.get("/:endpointId/job-stop/:workerId", async (request, reply) => {
    const worker = await workerOf(parts, request);
    const jobsToStop = await awaitStops(parts, worker, goneSignal(reply));
    return jobsToStop.length > 0 ? sendJson(reply, JSON.stringify({ jobsToStop })) : nothing(reply);
  });
  app.get("/:endpointId/ping/:workerId", async (request, reply) => {
    const worker = await workerOf(parts, request);
    if (!isLive(worker)) throw unauthorized("This worker has ended.");
    const { job_id, status, check, reason } = request.query as Query;
    if (status === "unhealthy") await hearUnhealthy(parts, worker, [check, reason].filter(Boolean).join(": "));
    else await hearPing(parts, worker, new Set(job_id ? job_id.split(",") : []));
    return sendJson(reply, "{}");
  });
}

const nothing = (reply: FastifyReply) => reply.code(204).send();

async function take(parts: Parts, request: FastifyRequest, reply: FastifyReply, count: number, batch: boolean) {
  const worker = await workerOf(parts, request);
  const inProgress = (request.query as Query).job_in_progress;
  const gone = goneSignal(reply);
  const jobs = await takeJobs(parts, {
    worker,
    count,
    holdsNothing: inProgress === "0",
    isBusy: !batch && inProgress === "1",
    gone,
  });
  if (jobs.length === 0) return nothing(reply);
  const body = await lendTaken(parts, worker, jobs, gone);
  if (gone.aborted || isGone(reply)) {
    body?.release();
    await returnJobs(parts, worker, jobs);
    return reply.hijack();
  }
  if (!body) {
    await returnJobs(parts, worker, jobs);
    return nothing(reply); // no memory for such large inputs right now: the worker asks again
  }
  // if this fails, the worker's next take or pings show that it does not have the jobs
  const notReturned = (error: unknown) =>
    parts.emit({ type: "server.warning", message: "jobs that could not be sent were not given back", error });
  reply.raw.once("close", () => {
    if (wasWritten(reply)) tookOver(worker, jobs);
    else returnJobs(parts, worker, jobs).catch(notReturned);
  });
  return sendLentReply(parts, reply, batch ? { ...body, pieces: ["[", ...body.pieces, "]"] } : body);
}

/** The jobs as they are sent. If they cannot be read right now they go back, as if the poll had not come. */
async function lendTaken(parts: Parts, worker: LiveWorker, jobs: Parameters<typeof lendJobs>[2], gone: Signal) {
  const owner = parts.registry.endpointByNo(worker.row.endpointNo)?.ownerNo ?? 0;
  try {
    return await lendJobs(parts, owner, jobs, gone);
  } catch (error) {
    await returnJobs(parts, worker, jobs);
    throw error;
  }
}

/** Handles a worker's result: the reply is 200 whatever it is, or 503 if the store cannot take it. */
async function hear(reply: FastifyReply, act: () => Promise<void>): Promise<FastifyReply> {
  try {
    await act();
    return sendJson(reply, "{}");
  } catch (error) {
    if (error instanceof Refusal && error.status === 401) throw error;
    throw new Refusal("UNAVAILABLE", "The result could not be stored just now; send it again.", {
      retryAfterSeconds: 1,
    });
  }
}

/** A chunk's name, if its worker gives one. Chunks are never refused: an invalid name is ignored. */
const nameOf = (given: unknown): string | undefined =>
  typeof given === "string" && /^[\w-]+$/.test(given) && given.length <= limits.chunkNameCharsMax ? given : undefined;

function wordRoutes(app: FastifyInstance, parts: Parts): void {
  // the secret is checked before the body is read
  app.addHook("onRequest", async (request) => void (await workerOf(parts, request)));
  countBodies(
    app,
    "workers",
    (request) => parts.registry.endpoint((request.params as Params).endpointId)?.ownerNo ?? 0,
  );
  const word = (request: FastifyRequest) => request.body as Word;
  const bytes = (request: FastifyRequest) => request.body as Buffer | undefined;
  const jobId = (request: FastifyRequest) => (request.params as Params).jobId;
  const whenLive = (request: FastifyRequest, act: (worker: LiveWorker) => Promise<void>) => async () => {
    const worker = await workerOf(parts, request);
    if (isLive(worker)) await act(worker); // results of an ended worker are dropped
  };
  app.register(async (scope) => {
    takeWords(scope, limits.outputBytesMax + 1_024, true);
    scope.post("/:endpointId/job-done/:workerId/:jobId", (request, reply) =>
      hear(
        reply,
        whenLive(request, (worker) => finishJob(parts, worker, jobId(request), word(request))),
      ),
    );
  });
  app.register(async (scope) => {
    takeWords(scope, limits.outputBytesMax + 1_024, true);
    scope.post("/:endpointId/job-stream/:workerId/:jobId", (request, reply) =>
      hear(
        reply,
        whenLive(request, (worker) => {
          const name = nameOf((request.query as Query).chunk);
          const once = (digest: string, store: () => Promise<void>) =>
            onceHeard(reply, worker, jobId(request), digest, store);
          return appendChunk(parts, worker, jobId(request), word(request), name === undefined ? { once } : { name });
        }),
      ),
    );
  });
  app.register(async (scope) => {
    takeWords(scope, limits.outputBytesHard, false);
    scope.post("/:endpointId/job-done-batch/:workerId", (request, reply) =>
      hear(
        reply,
        whenLive(request, (worker) => finishJobs(parts, worker, bytes(request))),
      ),
    );
  });
}
