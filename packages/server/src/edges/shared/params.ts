import type { FastifyRequest } from "fastify";
import Type from "typebox";

/** The schema of parameters in the URL. */
export const params = (...names: readonly string[]) =>
  Type.Object(Object.fromEntries(names.map((name) => [name, Type.String()])));

/** A parameter of a request's URL. */
export const idOf = (request: FastifyRequest, name: string): string =>
  (request.params as Record<string, string>)[name] ?? "";

/** The values of a query parameter that is repeated, or one comma-separated text; undefined if it is absent. */
export const listOf = (value: string | readonly string[] | undefined): string[] | undefined =>
  value === undefined
    ? undefined
    : [value]
        .flat()
        .flatMap((each) => each.split(","))
        .map((each) => each.trim());
