import type { QueryClient } from "@tanstack/react-query";
import {
  createRootRouteWithContext,
  createRoute,
  createRouter,
  lazyRouteComponent,
  redirect,
} from "@tanstack/react-router";
import { Overview } from "./pages/overview.js";
import { SignIn } from "./pages/sign-in.js";
import { Frame } from "./parts/frame/frame.js";
import { NotFound } from "./parts/problem.js";
import { replayed } from "./replayed.js";
import { keyOfSession } from "./session.js";

/** The texts of a URL's query that a page knows. */
const texts =
  <const Names extends readonly string[]>(...names: Names) =>
  (query: Record<string, unknown>): { [Name in Names[number]]?: string } =>
    Object.fromEntries(names.flatMap((name) => (query[name] === undefined ? [] : [[name, String(query[name])]]))) as {
      [Name in Names[number]]?: string;
    };

/** The whole numbers of a URL's query that a page knows. */
const counts =
  <const Names extends readonly string[]>(...names: Names) =>
  (query: Record<string, unknown>): { [Name in Names[number]]?: number } =>
    Object.fromEntries(names.flatMap((name) => (Number.isInteger(query[name]) ? [[name, query[name]]] : []))) as {
      [Name in Names[number]]?: number;
    };

const root = createRootRouteWithContext<{ readonly queries: QueryClient }>()({ notFoundComponent: NotFound });

const signIn = createRoute({
  getParentRoute: () => root,
  path: "/sign-in",
  validateSearch: texts("to", "why"),
  component: SignIn,
});

const frame = createRoute({
  getParentRoute: () => root,
  id: "frame",
  component: Frame,
  beforeLoad: ({ location }) => {
    if (keyOfSession() === null) throw redirect({ to: "/sign-in", search: { to: location.href } });
  },
});

const overview = createRoute({
  getParentRoute: () => frame,
  path: "/",
  validateSearch: texts("q", "sort"),
  component: Overview,
});

const newEndpoint = createRoute({
  getParentRoute: () => frame,
  path: "/endpoints/new",
  validateSearch: texts("template"),
  component: lazyRouteComponent(() => import("./pages/new-endpoint.js"), "NewEndpoint"),
});

const job = createRoute({
  getParentRoute: () => frame,
  path: "/endpoints/$endpointId/jobs/$jobId",
  component: lazyRouteComponent(() => import("./pages/job.js"), "JobPage"),
});

const endpoint = createRoute({
  getParentRoute: () => frame,
  path: "/endpoints/$endpointId",
  component: lazyRouteComponent(() => import("./pages/endpoint/frame.js"), "EndpointFrame"),
});
const requests = createRoute({
  getParentRoute: () => endpoint,
  path: "/",
  validateSearch: texts("q", "sort"),
  component: lazyRouteComponent(() => import("./pages/endpoint/requests.js"), "Requests"),
});
const workers = createRoute({
  getParentRoute: () => endpoint,
  path: "workers",
  validateSearch: texts("worker", "sort"),
  component: lazyRouteComponent(() => import("./pages/endpoint/workers.js"), "Workers"),
});
const logs = createRoute({
  getParentRoute: () => endpoint,
  path: "logs",
  component: lazyRouteComponent(() => import("./pages/endpoint/logs.js"), "Logs"),
});
const scaling = createRoute({
  getParentRoute: () => endpoint,
  path: "scaling",
  validateSearch: (query) => ({ ...texts("sort")(query), ...counts(...replayed)(query) }),
  component: lazyRouteComponent(() => import("./pages/endpoint/scaling.js"), "Scaling"),
});
const metrics = createRoute({
  getParentRoute: () => endpoint,
  path: "metrics",
  component: lazyRouteComponent(() => import("./pages/endpoint/metrics.js"), "Metrics"),
});
const releases = createRoute({
  getParentRoute: () => endpoint,
  path: "releases",
  validateSearch: (query) => ({ ...texts("sort")(query), ...counts("version")(query) }),
  component: lazyRouteComponent(() => import("./pages/endpoint/releases.js"), "Releases"),
});
const settings = createRoute({
  getParentRoute: () => endpoint,
  path: "settings",
  component: lazyRouteComponent(() => import("./pages/endpoint/settings.js"), "Settings"),
});
const tryIt = createRoute({
  getParentRoute: () => endpoint,
  path: "try",
  validateSearch: texts("from"),
  component: lazyRouteComponent(() => import("./pages/endpoint/try.js"), "TryIt"),
});

type Resources = typeof import("./pages/nouns/resources.js");
type Access = typeof import("./pages/nouns/access.js");
const noun = <const Path extends string>(path: Path, component: ReturnType<typeof lazyRouteComponent>) =>
  createRoute({ getParentRoute: () => frame, path, validateSearch: texts("open", "sort", "sharedSort"), component });
const resource = (name: keyof Resources) => lazyRouteComponent(() => import("./pages/nouns/resources.js"), name);
const access = (name: keyof Access) => lazyRouteComponent(() => import("./pages/nouns/access.js"), name);

const keys = createRoute({
  getParentRoute: () => frame,
  path: "/keys",
  validateSearch: texts("open", "sort", "user"),
  component: access("Keys"),
});
const webhooks = createRoute({
  getParentRoute: () => frame,
  path: "/webhooks",
  validateSearch: texts("state", "endpoint", "open", "sort", "receiverSort"),
  component: lazyRouteComponent(() => import("./pages/webhooks.js"), "Webhooks"),
});
const usage = createRoute({
  getParentRoute: () => frame,
  path: "/usage",
  validateSearch: texts("range", "since", "until", "by", "sort", "podSort", "volumeSort"),
  component: lazyRouteComponent(() => import("./pages/usage.js"), "Usage"),
});
const hosts = createRoute({
  getParentRoute: () => frame,
  path: "/hosts",
  validateSearch: texts("sort"),
  component: lazyRouteComponent(() => import("./pages/hosts.js"), "Hosts"),
});
const server = createRoute({
  getParentRoute: () => frame,
  path: "/server",
  component: lazyRouteComponent(() => import("./pages/server.js"), "Server"),
});
const audit = createRoute({
  getParentRoute: () => frame,
  path: "/audit",
  validateSearch: texts("action", "resource", "user", "key", "since", "until", "open"),
  component: lazyRouteComponent(() => import("./pages/audit.js"), "Audit"),
});

const pages = frame.addChildren([
  overview,
  newEndpoint,
  job,
  endpoint.addChildren([requests, workers, logs, scaling, metrics, releases, settings, tryIt]),
  noun("/templates", resource("Templates")),
  noun("/volumes", resource("Volumes")),
  noun("/pods", resource("Pods")),
  noun("/secrets", resource("Secrets")),
  noun("/registries", resource("Registries")),
  keys,
  noun("/users", access("Users")),
  webhooks,
  usage,
  hosts,
  server,
  audit,
]);

export const makeRouter = (queries: QueryClient) =>
  createRouter({ routeTree: root.addChildren([signIn, pages]), context: { queries }, defaultPreload: "intent" });

declare module "@tanstack/react-router" {
  interface Register {
    router: ReturnType<typeof makeRouter>;
  }
}
