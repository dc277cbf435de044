import type { FastifyInstance } from "fastify";
import { invalid, nestedTooDeep, Refusal } from "../../errors.js";
import { isNestedDeeper } from "../../json/nesting.js";
import { limits } from "../../limits/index.js";
import { countBodies, takeText } from "../shared/bodies/bodies.js";

/** Parses bodies as JSON under any content type. Names such as `__proto__` are harmless: only known fields are read. */
export function takeJson(app: FastifyInstance): void {
  takeText(app, (text) => {
    if (isNestedDeeper(text, limits.managementDepthMax)) throw nestedTooDeep();
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
}
