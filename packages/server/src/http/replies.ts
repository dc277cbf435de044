import { randomUUID } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { FastifyError, FastifyReply } from "fastify";
import { PlainSignal, type Signal } from "../clock.js";
import { errorText, openAiError } from "../domain/openai-error.js";
import { Refusal } from "../errors.js";
import type { Emit } from "../events.js";
import { limits } from "../limits.js";

/** Sends JSON text as it is. */
export function sendJson(reply: FastifyReply, text: string, status = 200): FastifyReply {
  return reply.code(status).header("content-type", "application/json; charset=utf-8").send(text);
}

/** The headers of a JSON reply that goes past the router. */
export const jsonHeaders = (requestId: string, body: string | Buffer, retryAfterSeconds?: number): string[] => [
  "x-request-id",
  requestId,
  "x-content-type-options",
  "nosniff",
  ...(retryAfterSeconds === undefined ? [] : ["retry-after", String(retryAfterSeconds)]),
  "content-type",
  "application/json; charset=utf-8",
  "content-length",
  String(Buffer.byteLength(body)),
];

/** A caller's own name for a request, or a new one. */
export function requestIdOf({ headers }: IncomingMessage): string {
  const given = headers["x-request-id"];
  return typeof given === "string" && /^[\x21-\x7e]{1,128}$/.test(given) ? given : randomUUID();
}

const isOver = (reply: ServerResponse): boolean => reply.destroyed || reply.closed || reply.req.socket.destroyed;

/** Acts once, when a reply was read or its client has gone. */
function onceClosed(reply: ServerResponse, act: () => void): void {
  if (reply.socket) return void reply.once("close", act);
  // one that waits behind another of its connection is not told of the connection's end
  const { socket } = reply.req;
  const once = () => {
    reply.off("close", once);
    socket.off("close", once);
    act();
  };
  socket.setMaxListeners(0); // there may be many such
  reply.once("close", once);
  socket.once("close", once);
}

let reportBytes = 0;

/** How much of the large replies that are not yet read is in memory. */
export const reportBytesHeld = (): number => reportBytes;

/**
 * A job's status body, to be sent. A large one stays in memory until its client has read it: all of them together are bounded,
 * and a client that reads nothing for a while is hung up on.
 */
export function boundedReport(reply: ServerResponse, text: string): string | Buffer {
  if (text.length <= limits.bodyBytesSmall) return text;
  const bytes = Buffer.from(text); // once: a text would be turned into bytes for the socket, and stay beside them
  if (reportBytes + bytes.length > limits.reportsBytesMax) {
    throw new Refusal("UNAVAILABLE", "Too many large results are being read; ask for this one again in a second.", {
      retryAfterSeconds: 1,
    });
  }
  if (isOver(reply)) return bytes; // its end was told already: what is counted now would be counted for ever
  reportBytes += bytes.length;
  onceClosed(reply, () => {
    reportBytes -= bytes.length;
  });
  reply.setTimeout(limits.readerStallMs, () => reply.destroy());
  return bytes;
}

/** Sends a job's status body, within the bounds of all that are on their way; to nobody who has gone. */
export function sendReport(reply: FastifyReply, text: string): FastifyReply {
  if (isGone(reply)) return reply.hijack();
  const body = boundedReport(reply.raw, text);
  return reply.code(200).header("content-type", "application/json; charset=utf-8").send(body);
}

export const refusalText = (refusal: Refusal, requestId: string): string =>
  JSON.stringify({ error: refusal.message, code: refusal.code, requestId });

const openAiUrl = /^(\/sdk)?\/v2\/[^/]+\/openai\//;

/** The one crossing from a refusal to a REST reply; the clients of some routes read errors of another shape. */
export function sendRefusal(reply: FastifyReply, refusal: Refusal, requestId: string): FastifyReply {
  if (refusal.retryAfterSeconds !== undefined) reply.header("retry-after", String(refusal.retryAfterSeconds));
  const { code, status, message } = refusal;
  const isOpenAi = openAiUrl.test(reply.request.url);
  return sendJson(
    reply,
    isOpenAi ? errorText(openAiError(status, code, message)) : refusalText(refusal, requestId),
    status,
  );
}

/** A request as a refusal speaks of it. */
interface Asked {
  readonly id: string;
  readonly route: string;
  readonly bodyLimit?: number | undefined;
}

export const bodyTooLarge = (bytesMax: number) =>
  new Refusal("PAYLOAD_TOO_LARGE", `The body is larger than the ${bytesMax / 1_048_576} MB that this route takes.`);

/** What went wrong, as a refusal: a caller's mistake is named, ours is logged and kept to ourselves. */
export function asRefusal(error: unknown, { id, route, bodyLimit = 0 }: Asked, emit: Emit): Refusal {
  if (error instanceof Refusal) return error;
  const { code, validation, statusCode } = error as FastifyError;
  if (code === "FST_ERR_CTP_BODY_TOO_LARGE") return bodyTooLarge(bodyLimit);
  if (validation?.[0]) return new Refusal("INVALID_INPUT", describe(validation[0]));
  if (statusCode !== undefined && statusCode >= 400 && statusCode < 500) {
    return new Refusal("INVALID_INPUT", "The request is malformed: check its headers and its body's length.");
  }
  emit({ type: "request.failed", requestId: id, route, error });
  return new Refusal("INTERNAL", "Something went wrong on our side; the log tells what, under this requestId.");
}

function describe(error: NonNullable<FastifyError["validation"]>[number]): string {
  const field = error.instancePath.slice(1).replaceAll("/", ".");
  const { title } = (error as { parentSchema?: { title?: string } }).parentSchema ?? {};
  if (title !== undefined) return `'${field}' must be ${title}.`;
  const allowed = (error.params as { allowedValues?: unknown[] }).allowedValues;
  const what = `${error.message}${allowed ? ` (${allowed.join(", ")})` : ""}`;
  return field === "" ? `The body ${what}.` : `'${field}' ${what}.`;
}

/** Whether an answer went out: a response may call itself finished on a connection that was reset. */
export const wasWritten = ({ raw }: FastifyReply): boolean =>
  raw.writableFinished && !raw.errored && !raw.req.socket.errored;

/** Whether there is nobody to answer: the socket knows before the response does. */
export const isGone = ({ raw }: FastifyReply): boolean => isOver(raw);

/** Aborts when the client has gone before its answer was written: at once where it has already. */
export function goneSignal(reply: FastifyReply): Signal {
  const gone = new PlainSignal();
  if (isGone(reply)) gone.abort();
  else {
    onceClosed(reply.raw, () => {
      if (!wasWritten(reply)) gone.abort();
    });
  }
  return gone;
}
