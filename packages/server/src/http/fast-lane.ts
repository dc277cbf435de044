import type { IncomingMessage, ServerResponse } from "node:http";
import { limits } from "../limits.js";
import { readJob } from "../operations/read-job.js";
import { submitJob } from "../operations/submit-job.js";
import { admitAtOnce } from "./access.js";
import type { JobParts } from "./jobs/routes.js";
import { misframed } from "./misframed.js";
import { asRefusal, boundedReport, refusalText, requestIdOf } from "./replies.js";

const runUrl = /^(\/v2|\/sdk\/v2)\/([a-z0-9]{14})\/run$/;
const statusUrl = /^(\/v2|\/sdk\/v2)\/([a-z0-9]{14})\/status\/([a-z0-9-]{1,64})$/;

/**
 * `/run` and `/status` without the router, which costs as much as all that they do. Only where nothing is unusual: what has
 * a query, a large or chunked body or an idempotency key, whose key or endpoint is not in memory, and all that is refused
 * before its body is read is left to the routes. Answers whether it has taken the request.
 */
export function fastLane(parts: JobParts): (request: IncomingMessage, reply: ServerResponse) => boolean {
  return (request, reply) => {
    const { method, url = "" } = request;
    if (method === "POST") {
      const [, prefix, endpointId] = runUrl.exec(url) ?? [];
      return endpointId !== undefined && hasSmallBody(request) && run(parts, request, reply, `${prefix}`, endpointId);
    }
    const [, prefix, endpointId, jobId] = (method === "GET" && statusUrl.exec(url)) || [];
    if (endpointId === undefined || jobId === undefined || hasBody(request)) return false;
    return status(parts, request, reply, `${prefix}`, endpointId, jobId);
  };
}

const hasBody = ({ headers }: IncomingMessage): boolean =>
  headers["content-length"] !== undefined ||
  headers["transfer-encoding"] !== undefined ||
  headers["content-encoding"] !== undefined;

/** Whether its body comes whole and small, as it is, and under no key. */
function hasSmallBody({ headers }: IncomingMessage): boolean {
  return (
    Number(headers["content-length"]) <= limits.bodyBytesSmall &&
    headers["transfer-encoding"] === undefined &&
    headers["content-encoding"] === undefined &&
    headers["idempotency-key"] === undefined
  );
}

function run(
  parts: JobParts,
  request: IncomingMessage,
  reply: ServerResponse,
  prefix: string,
  endpointId: string,
): boolean {
  const answer = enter(parts, request, reply, `${prefix}/:endpointId/run`, endpointId, "run");
  if (!answer) return false;
  const { endpoint, requestId } = answer;
  readWhole(request, (body) => {
    const submit = { endpoint, route: "run", body, waitMs: undefined, idempotencyKey: undefined, requestId } as const;
    submitJob(parts, submit).then(
      ({ jobId }) => answer.send(200, `{"id":"${jobId}","status":"IN_QUEUE"}`),
      answer.fail,
    );
  });
  return true;
}

function status(
  parts: JobParts,
  request: IncomingMessage,
  reply: ServerResponse,
  prefix: string,
  endpointId: string,
  jobId: string,
): boolean {
  const answer = enter(parts, request, reply, `${prefix}/:endpointId/status/:jobId`, endpointId, "status");
  if (!answer) return false;
  readJob(parts, answer.endpoint, jobId)
    .then((text) => answer.send(200, boundedReport(reply, text)))
    .catch(answer.fail);
  return true;
}

/** Lets a request in, and gives what answers it; undefined where the routes must look at it. */
function enter(
  parts: JobParts,
  request: IncomingMessage,
  reply: ServerResponse,
  route: string,
  endpointId: string,
  operation: "run" | "status",
) {
  if (request.headers.expect !== undefined || misframed(request)) return undefined;
  const admitted = admitAtOnce(parts, request.headers.authorization, endpointId, operation, operation === "run");
  if (!admitted) return undefined;
  const beganAt = performance.now();
  const requestId = requestIdOf(request);
  if (admitted.release) reply.once("close", admitted.release);
  const send = (status: number, body: string | Buffer, retryAfterSeconds?: number) => {
    reply.writeHead(status, [
      "x-request-id",
      requestId,
      "x-content-type-options",
      "nosniff",
      ...(retryAfterSeconds === undefined ? [] : ["retry-after", String(retryAfterSeconds)]),
      "content-type",
      "application/json; charset=utf-8",
      "content-length",
      String(typeof body === "string" ? Buffer.byteLength(body) : body.length),
    ]);
    reply.end(body);
    const durationMs = performance.now() - beganAt;
    parts.emit({ type: "request.served", route, method: request.method ?? "", status, durationMs });
  };
  const fail = (error: unknown) => {
    const refusal = asRefusal(error, { id: requestId, route }, parts.emit);
    send(refusal.status, refusalText(refusal, requestId), refusal.retryAfterSeconds);
  };
  return { endpoint: admitted.endpoint, requestId, send, fail };
}

/** A body that mostly comes in one piece; of one whose client goes away nothing is heard. */
function readWhole(request: IncomingMessage, then: (body: Buffer) => void): void {
  let body: Buffer | undefined;
  request.on("data", (piece: Buffer) => {
    body = body === undefined ? piece : Buffer.concat([body, piece]);
  });
  request.on("end", () => then(body ?? Buffer.alloc(0)));
}
