import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { Problem } from "../parts/problem.js";
import { Rows } from "../parts/rows.js";
import { Status } from "../parts/status.js";
import { span } from "../parts/times.js";
import { jobQuery } from "../queries.js";

const route = getRouteApi("/frame/endpoints/$endpointId/jobs/$jobId");

/** One job's story: how long it waited and ran, and what came of it. */
export function JobPage() {
  const { endpointId, jobId } = route.useParams();
  const { data, error, refetch } = useQuery(jobQuery(endpointId, jobId));
  if (error && !data) return <Problem what="This job" error={error} again={() => void refetch()} />;
  return (
    <>
      <title>{`Job ${jobId} · Millrace`}</title>
      <header className="page-head">
        <h1 className="id">{jobId}</h1>
        <p className="note">
          <Link to="/endpoints/$endpointId" params={{ endpointId }}>
            its endpoint
          </Link>
        </p>
      </header>
      {!data && <Rows columns={2} rows={3} />}
      {data && (
        <>
          <p>
            <Status of={data.status} /> {data.waitDetail}
          </p>
          <Bar waitedMs={data.delayTime} ranMs={data.executionTime} />
          {data.error && (
            <section aria-labelledby="error">
              <h2 id="error">Error</h2>
              <pre className="trouble">{data.error}</pre>
            </section>
          )}
          {data.output !== undefined && (
            <section aria-labelledby="output">
              <h2 id="output">Output</h2>
              <pre>{typeof data.output === "string" ? data.output : JSON.stringify(data.output, undefined, 2)}</pre>
            </section>
          )}
        </>
      )}
    </>
  );
}

/** Waiting and running, to scale. */
function Bar({ waitedMs, ranMs }: { readonly waitedMs: number; readonly ranMs: number }) {
  const all = Math.max(1, waitedMs + ranMs);
  const words = `waited ${span(waitedMs)}, ran ${span(ranMs)}`;
  return (
    <figure className="bar">
      <svg viewBox="0 0 100 4" preserveAspectRatio="none" role="img" aria-label={words}>
        <rect className="waited" width={(100 * waitedMs) / all} height="4" />
        <rect className="ran" x={(100 * waitedMs) / all} width={(100 * ranMs) / all} height="4" />
      </svg>
      <figcaption className="note">{words}</figcaption>
    </figure>
  );
}
