import type { StatusBody, Worker } from "@millrace/api";
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { Problem } from "../parts/problem.js";
import { Rows } from "../parts/rows.js";
import { Status } from "../parts/status.js";
import { span } from "../parts/times.js";
import { endpointQuery, healthQuery, requestsQuery, workersQuery } from "../queries.js";

const route = getRouteApi("/frame/endpoints/$endpointId");
const states = ["IN_QUEUE", "IN_PROGRESS", "COMPLETED", "FAILED", "CANCELLED", "TIMED_OUT"] as const;

/** One endpoint: its requests and its workers. */
export function EndpointPage() {
  const { endpointId } = route.useParams();
  const { status } = route.useSearch();
  const endpoint = useQuery(endpointQuery(endpointId));
  const health = useQuery(healthQuery(endpointId));
  const requests = useQuery(requestsQuery(endpointId, status));
  const workers = useQuery(workersQuery(endpointId));
  const name = endpoint.data?.name ?? endpointId;
  if (endpoint.error && !endpoint.data)
    return <Problem what="This endpoint" error={endpoint.error} again={() => void endpoint.refetch()} />;
  return (
    <>
      <title>{`${name} · Millrace`}</title>
      <header className="page-head">
        <h1>{name}</h1>
        {health.data && (
          <p className="note">
            {health.data.jobs.inQueue} waiting, {health.data.jobs.inProgress} running, {health.data.workers.ready} ready
          </p>
        )}
      </header>
      <section aria-labelledby="requests">
        <h2 id="requests">Requests</h2>
        <p className="filters">
          <Link to="." search={{}} activeOptions={{ exact: true, includeSearch: true }}>
            all
          </Link>
          {states.map((each) => (
            <Link key={each} to="." search={{ status: each }}>
              <Status of={each} />
            </Link>
          ))}
        </p>
        {requests.error && !requests.data && (
          <Problem what="The requests" error={requests.error} again={() => void requests.refetch()} />
        )}
        {!requests.error && !requests.data && <Rows columns={4} />}
        {requests.data && <Requests endpointId={endpointId} jobs={requests.data.requests} />}
      </section>
      <section aria-labelledby="workers">
        <h2 id="workers">Workers</h2>
        {workers.error && !workers.data && (
          <Problem what="The workers" error={workers.error} again={() => void workers.refetch()} />
        )}
        {!workers.error && !workers.data && <Rows columns={4} rows={2} />}
        {workers.data && <Workers workers={workers.data} />}
      </section>
    </>
  );
}

function Requests({ endpointId, jobs }: { readonly endpointId: string; readonly jobs: readonly StatusBody[] }) {
  if (jobs.length === 0)
    return (
      <div className="empty">
        <p>No such request. This sends one:</p>
        <pre>
          <code>{`curl -s ${location.origin}/v2/${endpointId}/run -H "Authorization: Bearer $MILLRACE_API_KEY" -d '{"input":{}}'`}</code>
        </pre>
      </div>
    );
  return (
    <div className="table-room">
      <table>
        <thead>
          <tr>
            <th scope="col">Job</th>
            <th scope="col">State</th>
            <th scope="col" className="number">
              Waited
            </th>
            <th scope="col" className="number">
              Ran
            </th>
            <th scope="col">Why</th>
          </tr>
        </thead>
        <tbody>
          {jobs.map(({ id, status, delayTime, executionTime, waitDetail, error }) => (
            <tr key={id}>
              <th scope="row" className="id">
                <Link to="/endpoints/$endpointId/jobs/$jobId" params={{ endpointId, jobId: id }}>
                  {id}
                </Link>
              </th>
              <td>
                <Status of={status} />
              </td>
              <td className="number">{span(delayTime)}</td>
              <td className="number">{status === "IN_QUEUE" ? "–" : span(executionTime)}</td>
              <td className="why">{error ?? waitDetail ?? ""}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Workers({ workers }: { readonly workers: readonly Worker[] }) {
  if (workers.length === 0) return <p className="note">None has been started yet: the first job starts one.</p>;
  return (
    <div className="table-room">
      <table>
        <thead>
          <tr>
            <th scope="col">Worker</th>
            <th scope="col">State</th>
            <th scope="col" className="number">
              Jobs
            </th>
            <th scope="col">Why</th>
          </tr>
        </thead>
        <tbody>
          {workers.map(({ id, state, jobs, why, doing }) => (
            <tr key={id}>
              <th scope="row" className="id">
                {id}
              </th>
              <td>{state}</td>
              <td className="number">{jobs}</td>
              <td className="why">{doing ?? why ?? ""}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
