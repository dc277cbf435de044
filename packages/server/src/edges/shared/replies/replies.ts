import { randomUUID } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { visible, visibleLines } from "@millrace/api";
import type { FastifyError, FastifyReply } from "fastify";
import { PlainSignal, type Signal } from "../../../clock.js";
import { errorText, openAiError } from "../../../domain/jobs/openai-error.js";
import { bodyTooLarge, malformed, Refusal } from "../../../errors.js";
import type { Emit } from "../../../events.js";
import { holdsControls } from "../../../operations/fields.js";

/** Sends JSON text as it is. */
export function sendJson(reply: FastifyReply, text: string, status = 200): FastifyReply {
  return reply.code(status).header("content-type", jsonType).send(text);
}

export const jsonType = "application/json; charset=utf-8";

/** The headers of a JSON reply outside the router, except its length. */
export const jsonHeaders = (requestId: string, refusal?: Refusal): string[] => [
  "x-request-id",
  requestId,
  "x-content-type-options",
  "nosniff",
  ...(refusal ? Object.entries(refusal.headers).flat() : []),
  "content-type",
  jsonType,
];

/** The caller's id for a request, or a new one. */
export function requestIdOf({ headers }: IncomingMessage): string {
  const given = headers["x-request-id"];
  return typeof given === "string" && /^[\x21-\x7e]{1,128}$/.test(given) ? given : randomUUID();
}

const isOver = (reply: ServerResponse): boolean => reply.destroyed || reply.closed || reply.req.socket.destroyed;

export const refusalText = (refusal: Refusal, requestId: string): string =>
  JSON.stringify({ error: refusal.message, code: refusal.code, requestId });

const openAiUrl = /^(\/sdk)?\/v2\/[^/]+\/openai\//;

/**
 * Turns a refusal into a REST reply; no other function does. Clients of some routes expect another shape of errors.
 */
export function sendRefusal(reply: FastifyReply, refusal: Refusal, requestId: string): FastifyReply {
  for (const [name, value] of Object.entries(refusal.headers)) if (!reply.hasHeader(name)) reply.header(name, value);
  const { code, status, message } = refusal;
  const isOpenAi = openAiUrl.test(reply.request.url);
  return sendJson(
    reply,
    isOpenAi ? errorText(openAiError(status, code, message)) : refusalText(refusal, requestId),
    status,
  );
}

/** A request as refusals refer to it. */
interface RefusedRequest {
  readonly id: string;
  readonly route: string;
  readonly bodyLimit?: number | undefined;
}

/**
 * Turns an error into a refusal: a caller's mistake is named; an error of ours is logged, and its details are not
 * revealed.
 */
export function asRefusal(error: unknown, { id, route, bodyLimit = 0 }: RefusedRequest, emit: Emit): Refusal {
  if (error instanceof Refusal) return error;
  const { code, validation, statusCode } = error as FastifyError;
  if (code === "FST_ERR_CTP_BODY_TOO_LARGE") return bodyTooLarge(bodyLimit);
  if (validation?.[0]) return new Refusal("INVALID_INPUT", describe(validation[0], validation));
  if (statusCode !== undefined && statusCode >= 400 && statusCode < 500) {
    return malformed();
  }
  emit({ type: "request.failed", requestId: id, route, error });
  return new Refusal("INTERNAL", "Something went wrong on our side; the server's log says what, under this requestId.");
}

type Mistake = NonNullable<FastifyError["validation"]>[number] & { parentSchema?: { title?: string; const?: unknown } };

/** Describes the first mistake. If a value may be one of several things, the other mistakes tell which. */
function describe(error: Mistake, all: readonly Mistake[]): string {
  const field = error.instancePath.slice(1).replaceAll("/", ".");
  const { pattern } = error.params;
  if (pattern === visible || pattern === visibleLines)
    return holdsControls(field.replace(/\.\d+$/, ""), pattern === visibleLines);
  const same = all.filter(({ instancePath }) => instancePath === error.instancePath);
  const title = same.map(({ parentSchema }) => parentSchema?.title).find((each) => each !== undefined);
  if (title !== undefined) return `'${field}' must be ${title}.`;
  const words = [...new Set(same.map(({ parentSchema }) => parentSchema?.const).filter(Boolean))];
  if (words.length > 0) return `'${field}' must be one of ${words.join(", ")}.`;
  const { allowedValues: allowed, additionalProperty } = error.params as {
    allowedValues?: unknown[];
    additionalProperty?: string;
  };
  if (additionalProperty !== undefined)
    return `${field === "" ? "The body" : `'${field}'`} has no field '${additionalProperty.slice(0, 80)}'.`;
  const what = `${error.message}${allowed ? ` (${allowed.join(", ")})` : ""}`;
  return field === "" ? `The body ${what}.` : `'${field}' ${what}.`;
}

/** Replies that were cut short, or sent in place of another. */
const endedEarly = new WeakSet<ServerResponse>();

/** Ends a held request with a refusal, or cuts its stream if it has begun. Other code then sees the client as gone. */
export function endEarly(reply: FastifyReply, refusal: Refusal): void {
  const { raw, request } = reply;
  if (isOver(raw) || raw.writableEnded) return;
  endedEarly.add(raw);
  if (raw.headersSent || reply.sent) raw.destroy();
  else sendRefusal(reply, refusal, request.id);
}

/** Whether a reply was sent: Node may call a response finished although its connection was reset. */
export const wasWritten = ({ raw }: Pick<FastifyReply, "raw">): boolean =>
  raw.writableFinished && !raw.errored && !raw.req.socket.errored && !endedEarly.has(raw);

/** Whether the client has gone: the socket knows before the response does. */
export const isGone = ({ raw }: FastifyReply): boolean => isOver(raw);

/** Aborts when the client goes before the reply is written; already aborted if it has gone. */
export function goneSignal({ raw }: Pick<FastifyReply, "raw">): Signal {
  const gone = new PlainSignal();
  if (isOver(raw)) gone.abort();
  else {
    raw.once("close", () => {
      if (!wasWritten({ raw })) gone.abort();
    });
  }
  return gone;
}
