import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link, Outlet, useRouterState } from "@tanstack/react-router";
import { useEffect, useRef } from "react";
import { Dot } from "../../parts/dot.js";
import { Problem } from "../../parts/problem.js";
import { endpointQuery, healthQuery } from "../../queries.js";

const route = getRouteApi("/frame/endpoints/$endpointId");

const tabs = [
  { to: "/endpoints/$endpointId", title: "Requests" },
  { to: "/endpoints/$endpointId/workers", title: "Workers" },
  { to: "/endpoints/$endpointId/logs", title: "Logs" },
  { to: "/endpoints/$endpointId/scaling", title: "Scaling" },
  { to: "/endpoints/$endpointId/metrics", title: "Metrics" },
  { to: "/endpoints/$endpointId/releases", title: "Releases" },
  { to: "/endpoints/$endpointId/settings", title: "Settings" },
  { to: "/endpoints/$endpointId/try", title: "Try it" },
] as const;

/** What all pages of one endpoint have in common: its name, its state, its tabs. */
export function EndpointFrame() {
  const { endpointId } = route.useParams();
  const endpoint = useQuery(endpointQuery(endpointId));
  const health = useQuery(healthQuery(endpointId));
  const nav = useRef<HTMLElement>(null);
  const path = useRouterState({ select: ({ location }) => location.pathname });
  // biome-ignore lint/correctness/useExhaustiveDependencies: another tab was opened
  useEffect(() => {
    const [row, tab] = [nav.current, nav.current?.querySelector<HTMLElement>(".active")];
    // on a phone the tabs scroll
    if (row && tab) row.scrollLeft = tab.offsetLeft - (row.clientWidth - tab.offsetWidth) / 2;
  }, [path]);
  if (endpoint.error && !endpoint.data)
    return <Problem what="This endpoint" error={endpoint.error} again={() => void endpoint.refetch()} />;
  const name = endpoint.data?.name ?? endpointId;
  return (
    <>
      <title>{`${name} · Millrace`}</title>
      <header className="page-head">
        <h1>
          <Dot health={health.data} />{" "}
          <span className="name" title={name}>
            {name}
          </span>
        </h1>
        <p className="note">
          <span className="id">{endpointId}</span>
          {endpoint.data &&
            ` · version ${endpoint.data.version} · ${endpoint.data.type === "LB" ? "load-balanced" : "queue"}`}
          {health.data &&
            ` · ${health.data.jobs.inQueue} waiting, ${health.data.jobs.inProgress} running, ${health.data.workers.ready} ready`}
        </p>
      </header>
      <nav className="tabs" ref={nav} aria-label="This endpoint">
        {tabs.map(({ to, title }) => (
          <Link key={to} to={to} params={{ endpointId }} activeOptions={{ exact: true, includeSearch: false }}>
            {title}
          </Link>
        ))}
      </nav>
      <Outlet />
    </>
  );
}
