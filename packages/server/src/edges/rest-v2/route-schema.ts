import { v2 } from "@millrace/api";
import type { FastifySchema } from "fastify";
import Type, { type TSchema } from "typebox";
import { params } from "../shared/params.js";

const problem = { content: { "application/problem+json": { schema: v2.Problem } } };
const of = (...statuses: readonly number[]) =>
  Object.fromEntries(statuses.map((status) => [status, { description: "RFC 9457.", ...problem }]));
const always = of(401, 403, 415, 500, 503);

interface Route {
  readonly operationId: string;
  readonly summary: string;
  readonly tag: string;
  readonly reply?: TSchema;
  /** 204 if absent. */
  readonly status?: 200 | 201;
  readonly body?: TSchema;
  readonly querystring?: TSchema;
  /** The names of the URL's parameters. */
  readonly names?: readonly string[];
}

/** The schema of a route of REST v2. */
export function route({ operationId, summary, tag, reply, status, body, querystring, names = [] }: Route): {
  schema: FastifySchema;
} {
  const done = reply ? { [status ?? 200]: reply } : { 204: Type.Null({ description: "Done." }) };
  const missed = names.length > 0 ? of(404) : {};
  const refused = body ? of(400, 413, 422, 507) : of(400);
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
