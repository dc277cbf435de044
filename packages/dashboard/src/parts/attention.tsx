import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { firstWaitingQuery, type Seen, workersQuery } from "../queries.js";

const shownMax = 8;

/** Endpoints whose jobs wait without anybody running them, or whose workers fail, each with the reason. */
export function Attention({ endpoints }: { readonly endpoints: readonly Seen[] }) {
  const needy = endpoints.filter(needsAttention);
  if (needy.length === 0) return null;
  return (
    <section aria-labelledby="attention" className="attention">
      <h2 id="attention">Needs attention</h2>
      <ul>
        {needy.slice(0, shownMax).map(({ id, name }) => (
          <li key={id}>
            <Link to="/endpoints/$endpointId" params={{ endpointId: id }}>
              {name}
            </Link>{" "}
            <Why endpointId={id} />
          </li>
        ))}
        {needy.length > shownMax && <li className="note">and {needy.length - shownMax} more</li>}
      </ul>
    </section>
  );
}

export function needsAttention({ health }: Seen): boolean {
  if (!health) return false;
  const { jobs, workers } = health;
  return (
    workers.unhealthy > 0 || workers.throttled > 0 || (jobs.inQueue > 0 && jobs.inProgress === 0 && workers.ready === 0)
  );
}

function Why({ endpointId }: { readonly endpointId: string }) {
  const workers = useQuery(workersQuery(endpointId));
  const waiting = useQuery(firstWaitingQuery(endpointId));
  const failing = workers.data?.find(({ state }) => state === "unhealthy" || state === "throttled");
  const said = waiting.data?.requests[0]?.waitDetail ?? failing?.why;
  return <span className="note">{said ?? "…"}</span>;
}
