import fastifyStatic from "@fastify/static";
import type { FastifyInstance } from "fastify";
import { ignoreBodies } from "../shared/bodies/bodies.js";
import { builtFolder, policy } from "./pages.js";

const address = "/docs/guide";

/** The guide, a static site: every page is a folder with an `index.html`. */
export async function guidePages(app: FastifyInstance): Promise<void> {
  const root = builtFolder("guide");
  if (!root) return;
  ignoreBodies(app);
  await app.register(fastifyStatic, { root, serve: false, preCompressed: true });
  app.get(address, { schema: { hide: true } }, (_, reply) => reply.redirect(`${address}/`, 301));
  // their names hold a hash of their content
  app.get(`${address}/assets/*`, { schema: { hide: true } }, (request, reply) =>
    reply.sendFile(`assets/${(request.params as { "*": string })["*"]}`, { maxAge: "1y", immutable: true }),
  );
  app.get(`${address}/*`, { schema: { hide: true } }, (request, reply) => {
    const path = (request.params as { "*": string })["*"];
    const isPage = path === "" || path.endsWith("/");
    reply.header("content-security-policy", policy).header("referrer-policy", "no-referrer");
    reply.header("cache-control", "no-cache");
    return reply.sendFile(isPage ? `${path}index.html` : path, { cacheControl: false });
  });
}
