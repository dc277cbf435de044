import type { FastifyError, FastifyReply, FastifyRequest } from "fastify";
import { Refusal } from "../errors.js";
import type { Emit } from "../events.js";
import { limits } from "../limits.js";

/** Sends JSON text as it is. */
export function sendJson(reply: FastifyReply, text: string, status = 200): FastifyReply {
  return reply.code(status).header("content-type", "application/json; charset=utf-8").send(text);
}

let reportBytes = 0;

/**
 * Sends a job's status body. A large one stays in memory until its client has read it: all of them together are bounded,
 * and a client that reads nothing for a while is hung up on.
 */
export function sendReport(reply: FastifyReply, text: string): FastifyReply {
  if (text.length <= limits.bodyBytesSmall) return sendJson(reply, text);
  const bytes = Buffer.from(text); // once: a text would be turned into bytes for the socket, and stay beside them
  if (reportBytes + bytes.length > limits.reportsBytesMax) {
    throw new Refusal("UNAVAILABLE", "Too many large results are being read; ask for this one again in a second.", {
      retryAfterSeconds: 1,
    });
  }
  reportBytes += bytes.length;
  reply.raw.once("close", () => {
    reportBytes -= bytes.length;
  });
  reply.raw.setTimeout(limits.readerStallMs, () => reply.raw.destroy());
  return reply.code(200).header("content-type", "application/json; charset=utf-8").send(bytes);
}

/** The one crossing from a refusal to a REST reply. */
export function sendRefusal(reply: FastifyReply, refusal: Refusal, requestId: string): FastifyReply {
  if (refusal.retryAfterSeconds !== undefined) reply.header("retry-after", String(refusal.retryAfterSeconds));
  const body = { error: refusal.message, code: refusal.code, requestId };
  return sendJson(reply, JSON.stringify(body), refusal.status);
}

export const bodyTooLarge = (bytesMax: number) =>
  new Refusal("PAYLOAD_TOO_LARGE", `The body is larger than the ${bytesMax / 1_048_576} MB that this route takes.`);

/** What went wrong, as a refusal: a caller's mistake is named, ours is logged and kept to ourselves. */
export function asRefusal(error: unknown, request: FastifyRequest, emit: Emit): Refusal {
  if (error instanceof Refusal) return error;
  const { code, validation, statusCode } = error as FastifyError;
  if (code === "FST_ERR_CTP_BODY_TOO_LARGE") return bodyTooLarge(request.routeOptions.bodyLimit ?? 0);
  if (validation?.[0]) return new Refusal("INVALID_INPUT", describe(validation[0]));
  if (statusCode !== undefined && statusCode >= 400 && statusCode < 500) {
    return new Refusal("INVALID_INPUT", "The request is malformed: check its headers and its body's length.");
  }
  emit({ type: "request.failed", requestId: request.id, route: request.routeOptions.url ?? "", error });
  return new Refusal("INTERNAL", "Something went wrong on our side; the log tells what, under this requestId.");
}

function describe(error: NonNullable<FastifyError["validation"]>[number]): string {
  const field = error.instancePath.slice(1).replaceAll("/", ".");
  const allowed = (error.params as { allowedValues?: unknown[] }).allowedValues;
  const what = `${error.message}${allowed ? ` (${allowed.join(", ")})` : ""}`;
  return field === "" ? `The body ${what}.` : `'${field}' ${what}.`;
}

/** A constant reason: an abort without one makes an exception with its stack. */
const hungUp = "the client is gone";

/** Whether an answer went out: a response may call itself finished on a connection that was reset. */
export const wasWritten = ({ raw }: FastifyReply): boolean =>
  raw.writableFinished && !raw.errored && !raw.req.socket.errored;

/** Whether there is nobody to answer: the socket knows before the response does. */
export const isGone = ({ raw }: FastifyReply): boolean => raw.destroyed || raw.req.socket.destroyed;

/** Aborts when the client has gone before its answer was written. */
export function goneSignal(reply: FastifyReply): AbortSignal {
  const gone = new AbortController();
  reply.raw.once("close", () => {
    if (!wasWritten(reply)) gone.abort(hungUp);
  });
  return gone.signal;
}
