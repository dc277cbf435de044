import { v2 } from "@millrace/api";
import type { FastifySchema } from "fastify";
import Type, { type TSchema } from "typebox";
import { params } from "../shared/params.js";

const problem = { content: { "application/problem+json": { schema: v2.Problem } } };
const of = (...statuses: readonly number[]) =>
  Object.fromEntries(statuses.map((status) => [status, { description: "RFC 9457.", ...problem }]));
const always = of(401, 403, 415, 429, 500, 503);

interface Route {
  readonly operationId: string;
  readonly summary: string;
  readonly tag: string;
  readonly reply?: TSchema;
  /** The reply's media type, if it is not JSON. */
  readonly media?: string;
  /** Errors that most routes do not have. */
  readonly errors?: readonly number[];
  /** Whether it may answer 204 as well. */
  readonly mayBeEmpty?: true;
  /** 204 if absent. */
  readonly status?: 200 | 201;
  readonly body?: TSchema;
  readonly querystring?: TSchema;
  /** The names of the URL's parameters. */
  readonly names?: readonly string[];
}

/** The schema of a route of REST v2. */
export function route({
  operationId,
  summary,
  tag,
  reply,
  media,
  status,
  body,
  querystring,
  mayBeEmpty,
  errors = [],
  names = [],
}: Route): {
  schema: FastifySchema;
} {
  const shown = media ? { content: { [media]: { schema: reply } } } : reply;
  const empty = { 204: Type.Null({ description: "Done." }) };
  const done = reply ? { [status ?? 200]: shown, ...(mayBeEmpty ? empty : {}) } : empty;
  const missed = names.length > 0 ? of(404) : {};
  const refused = of(400, ...(body || querystring ? [422] : []), ...(body ? [413, 507] : []), ...errors);
  return {
    schema: {
      operationId,
      summary,
      tags: [tag],
      ...(body ? { body } : {}),
      ...(querystring ? { querystring } : {}),
      ...(names.length > 0 ? { params: params(...names) } : {}),
      response: { ...done, ...always, ...missed, ...refused },
    },
  };
}
