import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, Outlet, useNavigate } from "@tanstack/react-router";
import { useNews } from "../news.js";
import { endpointsQuery } from "../queries.js";
import { signOut } from "../session.js";
import { Dot } from "./dot.js";
import { Mark } from "./mark.js";

/** What every page but the sign-in has around it: the rail of endpoints, and a line if the page is not live. */
export function Frame() {
  const queries = useQueryClient();
  const stream = useNews(queries);
  const navigate = useNavigate();
  const { data: endpoints = [] } = useQuery(endpointsQuery);

  function leave() {
    signOut();
    queries.clear();
    void navigate({ to: "/sign-in" });
  }

  return (
    <div className="frame">
      <a href="#page" className="skip">
        Skip to the page
      </a>
      <nav className="rail" aria-label="Main">
        <Link to="/" className="brand" activeOptions={{ exact: true }}>
          <Mark /> Millrace
        </Link>
        <h2 id="rail-endpoints">Endpoints</h2>
        <ul aria-labelledby="rail-endpoints">
          {endpoints.map(({ id, name, health }) => (
            <li key={id}>
              <Link to="/endpoints/$endpointId" params={{ endpointId: id }} className="rail-row">
                <Dot health={health} />
                <span className="name">{name}</span>
                {health && health.jobs.inQueue > 0 && <span className="count">{health.jobs.inQueue}</span>}
              </Link>
            </li>
          ))}
        </ul>
        <button type="button" className="quiet" onClick={leave}>
          Sign out
        </button>
      </nav>
      <main id="page" tabIndex={-1}>
        {stream === "asking" && (
          <p role="status" className="stale">
            Not live: the stream of changes has broken. This page asks every few seconds until it is back.
          </p>
        )}
        <Outlet />
      </main>
    </div>
  );
}
