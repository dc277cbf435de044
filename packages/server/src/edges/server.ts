import type { RequestListener, Server } from "node:http";
import { parse } from "node:querystring";
import Fastify, { type FastifyInstance, type FastifyReply } from "fastify";
import { forbidden, Refusal, routeNotFound } from "../errors.js";
import { limits } from "../limits/index.js";
import { admitToManagement } from "../operations/access/authenticate.js";
import type { SignInLink } from "../operations/access/sign-in-link.js";
import type { LogParts } from "../operations/logs/read-logs.js";
import type { Parts } from "../operations/needs.js";
import { turns } from "../turns.js";
import { guidePages } from "./dashboard/guide.js";
import { dashboardPages, lostPage } from "./dashboard/pages.js";
import { docsPage } from "./documents/docs-page.js";
import { documented } from "./documents/documents.js";
import { publicDocuments } from "./documents/public-documents.js";
import type { Gateway } from "./gateway/gateway.js";
import { Holders } from "./openai/holders.js";
import { openAiRoutes } from "./openai/routes.js";
import { fastLane } from "./queue/fast-lane.js";
import { jobRoutes } from "./queue/routes.js";
import { restRoutes } from "./rest-v1/routes.js";
import { RequestQuota } from "./rest-v2/request-quota.js";
import { restV2Routes } from "./rest-v2/routes.js";
import { logRoute, type ServerParts } from "./servers/log-route.js";
import type { JobParts } from "./shared/access.js";
import { countBodies, takeText } from "./shared/bodies/bodies.js";
import { linger } from "./shared/bodies/linger.js";
import { hasTooManyHeaders, refuseUnread } from "./shared/bodies/refuse-unread.js";
import type { HostJudge } from "./shared/connections/host-names.js";
import { type Connections, tooManyConnections } from "./shared/connections/keep-room.js";
import { misframed } from "./shared/connections/misframed.js";
import { isHeldBack } from "./shared/connections/pipelines.js";
import { laneOf } from "./shared/lanes.js";
import { buildLazily } from "./shared/lazy-validation.js";
import { sendPlainRefusal } from "./shared/replies/plain-refusal.js";
import { asRefusal, requestIdOf, sendRefusal } from "./shared/replies/replies.js";
import { lendRooms } from "./shared/replies/room.js";
import { sharedPage } from "./shared/replies/shared-page.js";
import { workerRoutes } from "./worker-protocol/routes.js";

export interface HttpParts extends Parts, JobParts, LogParts {
  /** The metrics page in Prometheus' text format. */
  readonly metrics: () => Promise<{ contentType: string; text: string }>;
  /** The GraphQL routes. Passed in because edges do not import each other. */
  readonly graphql: (app: FastifyInstance, setToZero: boolean) => Promise<void>;
  /** The logs that this server keeps, where other servers may ask for them. */
  readonly logsHere?: Pick<ServerParts, "logs" | "marks"> | undefined;
  /** Passes requests on to workers' own HTTP servers. */
  readonly gateway?: Gateway;
  /** Signs one person in after the first start. */
  readonly signInLink?: SignInLink | undefined;
  /** The domain under which load-balanced endpoints have host names of their own. */
  readonly lbDomain?: string | undefined;
  /** Whether the forwarding headers of a proxy are trusted. */
  readonly isProxyTrusted?: boolean;
  /** The connections of the door, told whose each one is. */
  readonly connections?: Connections;
  /** Whether a request's Host is ours; if absent, every Host is. */
  readonly isOurHost?: HostJudge;
  /** What runs here, for people who operate it. */
  readonly about?: { readonly version: string; readonly commit: string | undefined };
  /** Whether the store answers. */
  readonly isReady: () => Promise<boolean>;
  /** Called for each route that is registered. */
  readonly onRoute?: (method: string, url: string) => void;
}

/** Registers every route. The server is listening already: `take` receives the listener for its requests. */
export async function buildHttp(
  parts: HttpParts,
  server: Server,
  take: (listener: RequestListener) => void,
): Promise<FastifyInstance> {
  const isTaken = fastLane(parts);
  const app = Fastify({
    serverFactory: (listener) => {
      const serve: RequestListener = (request, reply) => {
        if (reply.closed) return; // its client has gone while it waited
        if (parts.gateway?.take(request, reply)) return;
        if (request.httpVersionMinor > 0 && /^100-continue$/i.test(request.headers.expect ?? "")) reply.writeContinue();
        if (isTaken(request, reply)) return;
        // bodies are accepted under any content type, even a malformed one: each route knows what it reads
        request.headers["content-type"] = "application/octet-stream";
        (listener as RequestListener)(request, reply);
      };
      take((request, reply) => {
        if (hasTooManyHeaders(request)) {
          // a second Host header among them must be reported first
          const isMisframed = misframed(request, parts.isOurHost) !== undefined;
          refuseUnread(isMisframed ? undefined : "HPE_HEADER_OVERFLOW", request.socket);
          return;
        }
        const lane = laneOf(parts, request);
        if (typeof lane[0] === "number" && parts.connections?.know(request.socket, lane[0]) === false) {
          sendPlainRefusal(reply, requestIdOf(request), tooManyConnections(), ["connection", "close"]);
        } else if (turns.isOver) turns.wait(lane, () => serve(request, reply));
        else serve(request, reply);
      });
      return server;
    },
    trustProxy: parts.isProxyTrusted ? (_address, hop) => hop === 0 : false, // the proxy itself, and none before it
    logger: false,
    // a malformed path or an overlong parameter never reaches a route
    frameworkErrors: (_error, request, reply) => {
      reply.header("x-request-id", request.id).header("x-content-type-options", "nosniff");
      const refusal = new Refusal("INVALID_INPUT", "The address is malformed or too long.");
      return sendRefusal(reply as unknown as FastifyReply, refusal, request.id);
    },
    clientErrorHandler: (error, socket) => {
      if (!isHeldBack(error, socket)) refuseUnread((error as NodeJS.ErrnoException).code, socket);
    },
    exposeHeadRoutes: false,
    return503OnClosing: false,
    bodyLimit: limits.managementBytesMax,
    genReqId: requestIdOf,
    schemaController: { compilersFactory: { buildValidator: buildLazily } },
    routerOptions: { maxParamLength: 512, querystringParser: parseQuery },
    ajv: {
      customOptions: {
        coerceTypes: false,
        useDefaults: false,
        removeAdditional: false,
        strict: false,
        verbose: true,
        validateSchema: false, // a test checks the schemas: their first request would stall others for it
      },
    },
  });
  app.addHook("onRoute", ({ method, url }) => {
    for (const each of [method].flat()) parts.onRoute?.(each, url);
  });
  app.decorateRequest("caller");
  app.decorateRequest("endpoint");
  // with callbacks: a promise per hook costs on every request
  app.addHook("onRequest", (request, reply, done) => {
    reply.header("x-request-id", request.id).header("x-content-type-options", "nosniff");
    done(misframed(request.raw, parts.isOurHost));
  });
  app.addHook("onResponse", (request, reply, done) => {
    const route = request.routeOptions.url ?? "unknown";
    const { method } = request;
    parts.emit({ type: "request.served", route, method, status: reply.statusCode, durationMs: reply.elapsedTime });
    done();
  });
  app.setErrorHandler((error, request, reply) => {
    const { url: route = "", bodyLimit } = request.routeOptions;
    const refusal = asRefusal(error, { id: request.id, route, bodyLimit }, parts.emit);
    request.countedBody?.release();
    if (refusal.status === 413 || (refusal.status === 503 && !request.raw.complete)) linger(request.raw, reply);
    return sendRefusal(reply, refusal, request.id);
  });
  const sendsPage = lostPage();
  app.setNotFoundHandler((request, reply) => {
    if (!sendsPage(request, reply)) sendRefusal(reply, routeNotFound(request.method, request.url), request.id);
  });
  await addRoutes(app, parts);
  parts.gateway?.listen(server);
  await app.ready();
  return app;
}

async function addRoutes(app: FastifyInstance, parts: HttpParts): Promise<void> {
  const quota = parts.rates && new RequestQuota();
  const documents: Record<"v1" | "v2", () => object> = { v1: () => ({}), v2: () => ({}) };
  await app.register(async (v2) => {
    documents.v2 = await documented(v2, "Millrace API v2: queue and management", "2.0.0", "/v2", openAiNote);
    await v2.register(async (scope) => jobRoutes(scope, { ...parts, envelope: false }), { prefix: "/v2" });
    await v2.register(async (scope) => restV2Routes(scope, { ...parts, quota }), { prefix: "/v2" });
  });
  await app.register(async (v1) => {
    documents.v1 = await documented(v1, "Millrace management API", "0.1.0", "/v1");
    await v1.register(async (scope) => docsPage(scope, documents.v1));
    await v1.register(async (scope) => restRoutes(scope, { ...parts, isSdk: false }), { prefix: "/v1" });
  });
  await app.register(async (scope) => publicDocuments(scope, documents));
  await app.register(async (scope) => workerRoutes(scope, parts), { prefix: "/v2" });
  const holders = new Holders();
  await app.register(async (scope) => openAiRoutes(scope, { ...parts, holders }), { prefix: "/v2" });
  await app.register(async (scope) => openAiRoutes(scope, { ...parts, holders }), { prefix: "/sdk/v2" });
  await app.register(async (scope) => jobRoutes(scope, { ...parts, envelope: true }), { prefix: "/sdk/v2" });
  await app.register(async (scope) => restV2Routes(scope, { ...parts, quota }), { prefix: "/sdk/v2" });
  await app.register(async (scope) => restRoutes(scope, { ...parts, isSdk: true }), { prefix: "/sdk/v1" });
  await app.register(async (scope) => graphqlScope(scope, parts, false), { prefix: "/graphql" });
  await app.register(async (scope) => graphqlScope(scope, parts, true), { prefix: "/sdk/graphql" });
  operationRoutes(app, parts);
  if (parts.logsHere) logRoute(app, { ...parts, ...parts.logsHere });
  await app.register(async (scope) => dashboardPages(scope, parts.signInLink));
  await app.register(guidePages);
}

async function graphqlScope(app: FastifyInstance, parts: HttpParts, setToZero: boolean): Promise<void> {
  takeText(app, (text) => text);
  countBodies(app, "clients");
  lendRooms(app, parts);
  app.addHook("onSend", (request, reply, _payload, done) => {
    if (reply.statusCode === 413) linger(request.raw, reply);
    done();
  });
  await parts.graphql(app, setToZero);
}

/** Not in the document's paths: OpenAPI cannot describe a path of arbitrary depth. */
const openAiNote =
  " OpenAI clients use /v2/{endpointId}/openai/v1 as their base URL: a request to any path below it becomes a job.";

/** Makes every parameter a single text: repeated ones are joined by commas, as headers are. */
function parseQuery(text: string): Record<string, string> {
  const query = parse(text);
  for (const name in query) if (Array.isArray(query[name])) query[name] = query[name].join(",");
  return query as Record<string, string>;
}

function operationRoutes(app: FastifyInstance, parts: HttpParts): void {
  const metrics = sharedPage(parts, parts.metrics);
  const health = { status: "ok", ...parts.about, runtime: `Node.js ${process.versions.node}` };
  app.get("/healthz", async () => health);
  app.get("/readyz", async () => {
    const ready = !parts.draining.aborted && (await parts.isReady());
    if (!ready) throw new Refusal("UNAVAILABLE", "The service is not ready.", { retryAfterSeconds: 1 });
    return { status: "ready" };
  });
  app.get("/metrics", async (request, reply) => {
    // counts by endpoint belong to their owners: they are open on loopback, and need a key elsewhere
    if (!/^(127\.|::1$|::ffff:127\.)/.test(request.ip)) {
      const { isAdmin, scope } = await admitToManagement(parts, request.headers.authorization, false);
      if (!isAdmin || scope.kind === "endpoints") throw forbidden("Metrics are for keys of an admin.");
    }
    const { contentType, bytes } = await metrics();
    return reply.header("content-type", contentType).send(bytes);
  });
}
