import type { FastifyInstance } from "fastify";
import { Refusal } from "../../errors.js";
import { admitToManagement, presentCaller } from "../../operations/access/authenticate.js";
import type { Parts } from "../../operations/needs.js";
import { callerOf } from "./caller.js";

/** Checks the key of every request of a management API, and once more when its body is there. */
export function admitCallers(app: FastifyInstance, parts: Parts): void {
  app.addHook("onRequest", async (request) => {
    request.caller = callerOf(request, await admitToManagement(parts, request.headers.authorization, false));
    request.caller = callerOf(request, presentCaller(parts, request.caller, request.method !== "GET"));
    if (request.headers["content-encoding"] && request.headers["content-encoding"] !== "identity") {
      throw new Refusal("UNSUPPORTED_ENCODING", "Send the body without a content encoding.");
    }
  });
  app.addHook("preHandler", async (request) => {
    const caller = presentCaller(parts, request.caller, request.method !== "GET"); // the body may have taken minutes
    request.caller = callerOf(request, caller);
  });
}
