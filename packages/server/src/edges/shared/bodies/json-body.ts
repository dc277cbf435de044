import { ignoredHeader } from "@millrace/api";
import type { FastifyInstance, FastifyReply } from "fastify";
import { invalid, Refusal } from "../../../errors.js";
import { limits } from "../../../limits/index.js";
import { countBodies, takeText } from "./bodies.js";
import { checkExtent } from "./extent.js";

/**
 * Parses bodies as JSON under any content type. Routes get the fields that their schema names; the others are ignored, and
 * named in the header `x-millrace-ignored`, so that a misspelt field is not ignored in silence. Nor is one that has no
 * effect here.
 */
export function takeJson(app: FastifyInstance): void {
  takeText(app, (text) => {
    checkExtent(text);
    try {
      return JSON.parse(text);
    } catch {
      throw new Refusal("INVALID_JSON", "The body is not JSON.");
    }
  });
  countBodies(app, "clients");
  app.addHook("preValidation", async (request) => {
    const { body } = request;
    if (typeof body !== "object" || body === null || Array.isArray(body))
      throw invalid("The body must be a JSON object.");
  });
  app.addHook("preHandler", async (request, reply) => {
    const { body: schema } = request.routeOptions.schema as { body: { properties: Properties } };
    const [known, ignored] = partedBy(schema.properties, request.body as object);
    request.body = known;
    nameIgnored(reply, ignored);
  });
}

/** Names the inputs that have no effect, if there are any. */
export function nameIgnored(reply: FastifyReply, names: readonly string[], count = names.length): void {
  if (count > 0) reply.header(ignoredHeader, namesIn(names, count));
}

type Properties = Readonly<Record<string, Field>>;
interface Field {
  readonly type?: string;
  readonly properties?: Properties;
  readonly anyOf?: readonly Field[];
  readonly [ignoredHeader]?: true;
}

/** The fields that a value may have; undefined if it may have any. Of alternatives, those that any of them has. */
function fieldsOf({ properties, anyOf = [] }: Field): Properties | undefined {
  if (properties) return properties;
  const objects = anyOf.filter(({ type }) => type === "object").map(fieldsOf);
  return objects.length > 0 && objects.every((each) => each !== undefined) ? Object.assign({}, ...objects) : undefined;
}

/** The fields that a schema names, at every depth, and the names of the others. */
function partedBy(properties: Properties, body: object): [known: object, ignored: string[]] {
  const known: [string, unknown][] = [];
  const ignored: string[] = [];
  for (const [name, value] of Object.entries(body)) {
    const inner = Object.hasOwn(properties, name) ? properties[name] : undefined;
    const fields = inner && fieldsOf(inner);
    if (inner === undefined || inner[ignoredHeader]) ignored.push(name);
    else if (fields && typeof value === "object" && value !== null && !Array.isArray(value)) {
      const [within, unknown] = partedBy(fields, value);
      known.push([name, within]);
      ignored.push(...unknown.map((each) => `${name}.${each}`));
    } else known.push([name, value]);
  }
  return [Object.fromEntries(known), ignored];
}

/** Names for `ignoredHeader`: comma-separated, invisible characters percent-encoded, only the first few if there are many. */
export function namesIn(names: readonly string[], count: number): string {
  const shown: string[] = [];
  let chars = 0;
  for (const name of names.slice(0, limits.ignoredNamesMax)) {
    const text = encodeURIComponent(name.slice(0, limits.ignoredNameCharsMax).toWellFormed());
    chars += text.length;
    if (chars > limits.ignoredHeaderCharsMax) break;
    shown.push(text);
  }
  return count > shown.length ? `${shown.join(", ")}, and ${count - shown.length} more` : shown.join(", ");
}
