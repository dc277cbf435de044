import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { goneText } from "../../domain/jobs/status-text.js";
import { invalid, Refusal } from "../../errors.js";
import type { ReceivedText } from "../../json/json.js";
import { limits } from "../../limits/index.js";
import { abandonJob } from "../../operations/jobs/abandon-job.js";
import { submitOpenAi } from "../../operations/jobs/submit-openai.js";
import type { JobParts } from "../shared/access.js";
import { admitToJobs } from "../shared/access.js";
import { countBodies, takeBytes } from "../shared/bodies/bodies.js";
import { otherMethods } from "../shared/methods.js";
import { goneSignal, isGone, sendJson } from "../shared/replies/replies.js";
import { traceparentFor } from "../shared/traceparent.js";
import { type Heard, sendResult } from "./answer.js";
import type { Holders } from "./holders.js";
import { sendStream } from "./stream.js";

export type OpenAiParts = JobParts & { readonly holders: Holders };

/** The routes that OpenAI's clients call: each request becomes a job, and its reply is the job's result. */
export async function openAiRoutes(app: FastifyInstance, parts: OpenAiParts): Promise<void> {
  const refuseOthers = otherMethods(app);
  app.addHook("onRequest", (request, reply) => admitToJobs(parts, request, reply));
  takeBytes(app);
  countBodies(app, "clients");
  app.route({
    method: ["GET", "POST"],
    url: "/:endpointId/openai/*",
    bodyLimit: limits.openaiBytesMax,
    // a GET makes a job, too
    config: { rated: "openai", changes: true },
    handler: (request, reply) => answer(parts, request, reply),
  });
  refuseOthers();
}

async function answer(parts: OpenAiParts, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
  const gone = goneSignal(reply);
  const { jobId, known, streams, hasKey } = await submit(parts, request);
  reply.header("x-job-id", jobId);
  const release = parts.holders.hold(jobId);
  const isOver = () => gone.aborted || isGone(reply);
  let heard: Heard = "part";
  try {
    if (known && !(await parts.reader.find({ endpointNo: request.endpoint.no, jobId, now: parts.clock.now() }))) {
      heard = "all";
      return sendJson(reply, goneText(known));
    }
    const send = streams ? sendStream : sendResult;
    if (!isOver()) heard = await send(parts, request, reply, jobId, gone);
  } finally {
    const isLast = release();
    // a client with an idempotency key may ask again while the job exists; clients at other servers are unknown here
    const isLeft = hasKey ? !parts.registry.isShared && (isOver() || heard === "error") : true;
    if (isLast && heard !== "all" && isLeft) await abandonJob(parts, request.endpoint, jobId); // no client reads it
  }
  return reply.sent ? reply : reply.hijack();
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what the pattern looks for
const hasControls = (path: string) => /[\x00-\x1f\x7f]/.test(path);

async function submit(parts: OpenAiParts, request: FastifyRequest) {
  const { "*": path } = request.params as { "*": string };
  if (path === "") throw new Refusal("NOT_FOUND", "Add the path to call, such as /openai/v1/chat/completions.");
  // a store may reject them, and a changed path would be another request
  if (hasControls(path)) throw invalid("The path must hold no control characters.");
  const key = request.headers["idempotency-key"];
  const submitted = await submitOpenAi(parts, {
    endpoint: request.endpoint,
    method: request.method,
    path: `/${path}`,
    body: (request.body as ReceivedText | null | undefined) ?? undefined,
    idempotencyKey: key === undefined ? undefined : String(key),
    requestId: request.id,
    traceparent: traceparentFor(parts, request),
  });
  request.countedBody?.release();
  request.body = undefined; // a long wait for the result must not keep it in memory
  return { ...submitted, hasKey: key !== undefined };
}
