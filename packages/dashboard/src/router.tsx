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
import { Frame } from "./parts/frame.js";
import { NotFound } from "./parts/problem.js";
import { keyOfSession } from "./session.js";

const root = createRootRouteWithContext<{ readonly queries: QueryClient }>()({ notFoundComponent: NotFound });

const signIn = createRoute({
  getParentRoute: () => root,
  path: "/sign-in",
  validateSearch: ({ to }: Record<string, unknown>): { to?: string } => (typeof to === "string" ? { to } : {}),
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

const overview = createRoute({ getParentRoute: () => frame, path: "/", component: Overview });

const endpoint = createRoute({
  getParentRoute: () => frame,
  path: "/endpoints/$endpointId",
  validateSearch: ({ status }: Record<string, unknown>): { status?: string } =>
    typeof status === "string" ? { status } : {},
  component: lazyRouteComponent(() => import("./pages/endpoint.js"), "EndpointPage"),
});

const job = createRoute({
  getParentRoute: () => frame,
  path: "/endpoints/$endpointId/jobs/$jobId",
  component: lazyRouteComponent(() => import("./pages/job.js"), "JobPage"),
});

export const makeRouter = (queries: QueryClient) =>
  createRouter({
    routeTree: root.addChildren([signIn, frame.addChildren([overview, endpoint, job])]),
    context: { queries },
    defaultPreload: "intent",
  });

declare module "@tanstack/react-router" {
  interface Register {
    router: ReturnType<typeof makeRouter>;
  }
}
