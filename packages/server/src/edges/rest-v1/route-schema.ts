import * as api from "@millrace/api";
import type { FastifyInstance, FastifyRequest } from "fastify";
import Type, { type TSchema } from "typebox";
import { params } from "../shared/params.js";

/** The refusals that every route may reply with. */
export const errors = {
  400: api.ErrorBody,
  401: api.ErrorBody,
  404: api.ErrorBody,
  415: api.ErrorBody,
  500: api.ErrorBody,
  503: api.ErrorBody,
};
/** The refusals of routes that take a body. */
export const writeErrors = { ...errors, 413: api.ErrorBody, 507: api.ErrorBody };

/** The schema of a route without a body. */
export const doc = (summary: string, tag: string, reply: TSchema, more: object = {}) => ({
  schema: { summary, tags: [tag], response: { 200: reply, ...errors }, ...more },
});
/** The schema of a route that deletes. */
export const deletion = (summary: string, tag: string, name: string, more: object = {}) => ({
  schema: { summary, tags: [tag], params: params(name), response: { 204: Type.Null(), ...errors }, ...more },
});

/** Registers PATCH and its equivalent, POST to `/update`. */
export function patches(
  app: FastifyInstance,
  url: string,
  schema: object,
  handler: (request: FastifyRequest) => Promise<unknown>,
): void {
  app.patch(url, { schema }, handler);
  app.post(`${url}/update`, { schema }, handler);
}
