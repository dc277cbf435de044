import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, Outlet, useNavigate, useRouterState } from "@tanstack/react-router";
import { useEffect, useMemo, useState } from "react";
import { useNews } from "../../news.js";
import { places } from "../../places.js";
import { endpointsQuery, type Seen } from "../../queries.js";
import { signOut } from "../../session.js";
import { Dot } from "../dot.js";
import { Saves } from "../saves.js";
import { KeyNote } from "./key-note.js";
import { Mark } from "./mark.js";
import { Palette } from "./palette.js";
import { ThemeButton } from "./theme.js";

const railMax = 20;

/** What every page but the sign-in has around it: the rail, the palette, and a line if the page is not live. */
export function Frame() {
  const queries = useQueryClient();
  const stream = useNews(queries);
  const navigate = useNavigate();
  const { data: endpoints = [], isPending } = useQuery(endpointsQuery);
  const [isOpen, setOpen] = useState(false);
  const path = useRouterState({ select: ({ location }) => location.pathname });
  // biome-ignore lint/correctness/useExhaustiveDependencies: another page was opened
  useEffect(() => setOpen(false), [path]);

  // chosen when a page is opened: a rail whose rows come and go is hard to hit
  // biome-ignore lint/correctness/useExhaustiveDependencies: not for each change of an endpoint
  const chosen = useMemo(() => busiest(endpoints).map(({ id }) => id), [path, endpoints.length]);
  const byId = new Map(endpoints.map((endpoint) => [endpoint.id, endpoint]));
  const shown = chosen.flatMap((id) => byId.get(id) ?? []);

  function leave() {
    signOut();
    // what is shown would ask again without a key
    void navigate({ to: "/sign-in" }).then(() => queries.clear());
  }

  return (
    <div className="frame">
      <a href="#page" className="skip">
        Skip to the page
      </a>
      <nav className={isOpen ? "rail open" : "rail"} aria-label="Main">
        <div className="rail-head">
          <Link to="/" className="brand" activeOptions={{ exact: true }}>
            <Mark /> Millrace
          </Link>
          <button type="button" className="menu" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
            Menu
          </button>
        </div>
        <div className="rail-body">
          <Palette endpoints={endpoints} />
          <h2 id="rail-endpoints">Endpoints</h2>
          <ul aria-labelledby="rail-endpoints">
            {shown.map(({ id, name, health }) => (
              <li key={id}>
                <Link to="/endpoints/$endpointId" params={{ endpointId: id }} className="rail-row">
                  <Dot health={health} />
                  <span className="name">{name || id}</span>
                  {health && health.jobs.inQueue > 0 && (
                    <span className="count" title="waiting">
                      {health.jobs.inQueue}
                    </span>
                  )}
                </Link>
              </li>
            ))}
            {endpoints.length > railMax && (
              <li>
                <Link to="/" className="rail-row" activeOptions={{ exact: true }}>
                  <span className="name">all {endpoints.length}</span>
                </Link>
              </li>
            )}
          </ul>
          {/* below the endpoints, which would push it down when they come */}
          {!isPending && (
            <>
              <h2 id="rail-places">Manage</h2>
              <ul aria-labelledby="rail-places">
                {places.slice(1).map(({ to, title }) => (
                  <li key={to}>
                    <Link to={to} className="rail-row">
                      <span className="name">{title}</span>
                    </Link>
                  </li>
                ))}
              </ul>
            </>
          )}
          <p className="rail-foot">
            <a href="/docs/guide/" className="quiet">
              Guide
            </a>
            <a href="/docs" className="quiet">
              API
            </a>
            <ThemeButton />
            <button type="button" className="quiet" onClick={leave}>
              Sign out
            </button>
          </p>
        </div>
      </nav>
      <main id="page" tabIndex={-1}>
        {stream === "asking" && (
          <p role="status" className="stale">
            Live updates are disconnected. This page refreshes every few seconds.
          </p>
        )}
        <KeyNote />
        <Saves>
          <Outlet />
        </Saves>
      </main>
    </div>
  );
}

/** All endpoints by name, or, of many, those with the most to do. */
function busiest(endpoints: readonly Seen[]): readonly Seen[] {
  const byName = (a: Seen, b: Seen) => a.name.localeCompare(b.name);
  if (endpoints.length <= railMax) return endpoints.toSorted(byName);
  const load = ({ health }: Seen) => (health ? health.jobs.inQueue + health.jobs.inProgress : 0);
  return endpoints
    .toSorted((a, b) => load(b) - load(a) || byName(a, b))
    .slice(0, railMax)
    .sort(byName);
}
