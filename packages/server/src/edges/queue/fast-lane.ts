import type { IncomingMessage, ServerResponse } from "node:http";
import { ignoredHeader } from "@millrace/api";
import { realTime } from "../../clock.js";
import type { JobReport } from "../../domain/jobs/job.js";
import { limits } from "../../limits/index.js";
import { lendStatus } from "../../operations/jobs/lend-status.js";
import { type Asked, describeJob, findJob } from "../../operations/jobs/read-job.js";
import { submitJob } from "../../operations/jobs/submit-job.js";
import { turns } from "../../turns.js";
import type { JobParts } from "../shared/access.js";
import { admitAtOnce } from "../shared/access.js";
import { namesIn } from "../shared/bodies/json-body.js";
import { readAway } from "../shared/bodies/linger.js";
import { readWhole } from "../shared/bodies/read-whole.js";
import type { HostJudge } from "../shared/connections/host-names.js";
import { misframed } from "../shared/connections/misframed.js";
import { asRefusal, goneSignal, jsonHeaders, refusalText, requestIdOf } from "../shared/replies/replies.js";
import { sendLent } from "../shared/replies/send-lent.js";
import { traceparentFor } from "../shared/traceparent.js";

type LaneParts = JobParts & { readonly isOurHost?: HostJudge };

const runUrl = /^(\/v2|\/sdk\/v2)\/([a-z0-9]{14})\/run$/;
const statusUrl = /^(\/v2|\/sdk\/v2)\/([a-z0-9]{14})\/status\/([a-z0-9-]{1,64})$/;

/**
 * Serves `/run` and `/status` without the router, which costs as much as everything else they do. Only for usual
 * requests: a query, a large or chunked body, an idempotency key, a key or endpoint that is not in memory, or anything
 * to be refused before the body is read, is left to the routes. Returns whether it has taken the request.
 */
export function fastLane(parts: LaneParts): (request: IncomingMessage, reply: ServerResponse) => boolean {
  return (request, reply) => {
    const { method, url = "" } = request;
    const isRun = method === "POST";
    const [, prefix, endpointId, jobId = ""] = (isRun ? runUrl : statusUrl).exec(url) ?? [];
    if (endpointId === undefined || !(isRun ? hasSmallBody(request) : method === "GET" && !announcesBody(request)))
      return false;
    const route = `${prefix}/:endpointId/${isRun ? "run" : "status/:jobId"}`;
    const entered = enter(parts, request, reply, { route, endpointId, operation: isRun ? "run" : "status" });
    if (!entered) return false;
    if (isRun) run(parts, request, entered);
    else status(parts, jobId, reply, entered);
    return true;
  };
}

/** Whether any header announces a body, even an empty one; such requests go to the routes. */
const announcesBody = ({ headers }: IncomingMessage): boolean =>
  headers["content-length"] !== undefined ||
  headers["transfer-encoding"] !== undefined ||
  headers["content-encoding"] !== undefined;

/** Whether the body is small, has a known length and no encoding, and comes without an idempotency key. */
function hasSmallBody({ headers }: IncomingMessage): boolean {
  return (
    Number(headers["content-length"]) <= limits.bodyBytesSmall &&
    headers["transfer-encoding"] === undefined &&
    headers["content-encoding"] === undefined &&
    headers["idempotency-key"] === undefined
  );
}

function run(parts: JobParts, request: IncomingMessage, { endpoint, requestId, check, send, fail }: Entered): void {
  const then = (body: Buffer, release: () => void) => {
    const traceparent = traceparentFor(parts, request);
    const asked = { waitMs: undefined, idempotencyKey: undefined, requestId, traceparent };
    const submit = { endpoint, route: "run", body, ...asked } as const;
    const submitted = async () => {
      check();
      return submitJob(parts, submit);
    };
    submitted()
      .finally(release)
      .then(({ jobId, ignored }) => {
        const headers = jsonHeaders(requestId);
        if (ignored.count > 0) headers.push(ignoredHeader, namesIn(ignored.names, ignored.count));
        send(200, `{"id":"${jobId}","status":"IN_QUEUE"}`, headers);
      }, fail);
  };
  readWhole(request, endpoint.ownerNo, { then, refuse: fail });
}

function status(parts: JobParts, jobId: string, reply: ServerResponse, entered: Entered): void {
  const { endpoint, requestId, send, fail, served } = entered;
  const sendLarge = async (job: JobReport) => {
    const gone = goneSignal({ raw: reply });
    await sendLent(parts, reply, jsonHeaders(requestId), await lendStatus(parts, entered, job, gone));
    served(200);
  };
  // jobs that were found together are answered together: hundreds of results would fill the event loop for long
  const sendSmall = async (job: JobReport) => {
    if (turns.isOver) await turns.take([endpoint.ownerNo, endpoint.no]);
    send(200, await describeJob(parts, entered, job));
  };
  findJob(parts, endpoint, jobId)
    .then((job) => (job.unreadBytes > 0 ? sendLarge(job) : sendSmall(job)))
    .catch(fail);
}

/** An admitted request, and the functions that reply to it. */
interface Entered extends Asked {
  readonly requestId: string;
  /** Throws if the key has ended since. */
  readonly check: () => void;
  readonly send: (status: number, body: string, headers?: string[]) => void;
  readonly fail: (error: unknown) => void;
  /** Records that the request was served. */
  readonly served: (status: number) => void;
}

interface LaneRequest {
  readonly route: string;
  readonly endpointId: string;
  readonly operation: "run" | "status";
}

/** Admits a request; undefined if the routes must look at it. */
function enter(
  parts: LaneParts,
  request: IncomingMessage,
  reply: ServerResponse,
  { route, endpointId, operation }: LaneRequest,
): Entered | undefined {
  if (request.headers.expect !== undefined || misframed(request, parts.isOurHost)) return undefined;
  const admitted = admitAtOnce(parts, request.headers.authorization, endpointId, operation, operation === "run");
  if (!admitted) return undefined;
  const beganAt = realTime.monotonicMs();
  const requestId = requestIdOf(request);
  if (admitted.release) reply.once("close", admitted.release);
  const served = (status: number) => {
    const durationMs = realTime.monotonicMs() - beganAt;
    parts.emit({ type: "request.served", route, method: request.method ?? "", status, durationMs });
  };
  const send = (status: number, body: string, headers = jsonHeaders(requestId)) => {
    headers.push("content-length", String(Buffer.byteLength(body)));
    reply.writeHead(status, headers);
    reply.end(body);
    served(status);
  };
  const fail = (error: unknown) => {
    const refusal = asRefusal(error, { id: requestId, route }, parts.emit);
    if (!request.complete) readAway(request);
    send(refusal.status, refusalText(refusal, requestId), jsonHeaders(requestId, refusal));
  };
  return { ...admitted, requestId, send, fail, served };
}
