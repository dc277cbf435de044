import type { FastifyInstance, HTTPMethods } from "fastify";
import { Refusal } from "../../errors.js";

/**
 * Records a scope's routes from now on. The returned function, called after them, adds a 405 with `Allow` for URLs that
 * exist, but not with that method. The scope's own checks (key, endpoint) still come first.
 */
export function otherMethods(app: FastifyInstance): () => void {
  const methods = new Map<string, Set<HTTPMethods>>();
  app.addHook("onRoute", ({ routePath, method }) => {
    const known = methods.get(routePath) ?? new Set();
    for (const each of [method].flat()) known.add(each as HTTPMethods);
    methods.set(routePath, known);
  });
  return () => {
    for (const [url, known] of [...methods]) {
      const allow = [...known].sort().join(", ");
      const others = app.supportedMethods.filter((method) => !known.has(method as HTTPMethods)) as HTTPMethods[];
      app.route({
        url,
        method: others,
        schema: { hide: true },
        onRequest: async (request, reply) => {
          reply.header("allow", allow);
          throw new Refusal("METHOD_NOT_ALLOWED", `This address takes ${allow}, and not ${request.method}.`);
        },
        handler: async () => undefined,
      });
    }
  };
}
