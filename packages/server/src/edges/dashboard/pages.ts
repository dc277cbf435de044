import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import fastifyStatic from "@fastify/static";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { unauthorized } from "../../errors.js";
import type { SignInLink } from "../../operations/access/sign-in-link.js";
import { ignoreBodies } from "../shared/bodies/bodies.js";

/** What the pages may load: their own files and this server's API; outputs of jobs may hold images, audio and video. */
export const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "font-src 'self'",
  "img-src 'self' data: blob:",
  "media-src 'self' data: blob:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

/** The web app's pages; every other path is the API's. */
export const pages = [
  "/",
  "/sign-in",
  "/endpoints/*",
  "/templates",
  "/volumes",
  "/pods",
  "/secrets",
  "/registries",
  "/keys",
  "/users",
  "/webhooks",
  "/usage",
  "/hosts",
  "/server",
  "/audit",
];

/** Where the web app, or the guide, is built to; undefined if it is not. */
export function builtFolder(name: "app" | "guide"): string | undefined {
  const dashboard = dirname(createRequire(import.meta.url).resolve("@millrace/dashboard/package.json"));
  const folder = join(dashboard, "dist", name);
  return existsSync(join(folder, "index.html")) ? folder : undefined;
}

const asPage = (reply: FastifyReply): FastifyReply =>
  reply
    .header("content-security-policy", policy)
    .header("referrer-policy", "no-referrer")
    .header("cache-control", "no-cache");

/** Sends the web app, which says that there is no such page. The result says whether it did: programs get JSON. */
export function lostPage(): (request: FastifyRequest, reply: FastifyReply) => boolean {
  const folder = builtFolder("app");
  const page = folder === undefined ? undefined : readFileSync(join(folder, "index.html"));
  return ({ method, url, headers }, reply) => {
    const isPerson = method === "GET" && headers.accept?.includes("text/html") && !/^\/(v\d|sdk|graphql)\b/.test(url);
    if (!isPerson || !page) return false;
    asPage(reply).code(404).type("text/html; charset=utf-8").send(page);
    return true;
  };
}

/** The dashboard: a web app that speaks to this server's API with the key of whoever looks at it. */
export async function dashboardPages(app: FastifyInstance, link: SignInLink | undefined): Promise<void> {
  const root = builtFolder("app");
  if (!root) return;
  ignoreBodies(app);
  await app.register(fastifyStatic, { root, serve: false, preCompressed: true });
  const page = (_: unknown, reply: FastifyReply) => asPage(reply).sendFile("index.html", { cacheControl: false });
  for (const path of pages) app.get(path, { schema: { hide: true } }, page);
  // in a header, and before that in the fragment of a link: a token in a URL would be in logs
  app.post("/sign-in/once", { schema: { hide: true } }, (request, reply) => {
    const [, token = ""] = /^Once (.+)$/.exec(request.headers.authorization ?? "") ?? [];
    const key = link?.redeem(token);
    if (key === undefined) throw unauthorized("This link has already been used or has expired: sign in with a key.");
    return reply.header("cache-control", "no-store").send({ key });
  });
  app.get("/icon.svg", { schema: { hide: true } }, (_, reply) => reply.sendFile("icon.svg"));
  // their names hold a hash of their content
  app.get("/assets/*", { schema: { hide: true } }, (request, reply) =>
    reply.sendFile(`assets/${(request.params as { "*": string })["*"]}`, { maxAge: "1y", immutable: true }),
  );
}
