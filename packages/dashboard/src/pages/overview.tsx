import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Dot } from "../parts/dot.js";
import { Problem } from "../parts/problem.js";
import { Rows } from "../parts/rows.js";
import { endpointsQuery, type Seen } from "../queries.js";

/** All endpoints: what waits, what runs, what needs attention. */
export function Overview() {
  const { data, error, refetch } = useQuery(endpointsQuery);
  return (
    <>
      <title>Endpoints · Millrace</title>
      <header className="page-head">
        <h1>Endpoints</h1>
        {data && <p className="note">{wordsOf(data)}</p>}
      </header>
      {error && !data && <Problem what="The list of endpoints" error={error} again={() => void refetch()} />}
      {!error && !data && <Rows columns={5} />}
      {data?.length === 0 && <Empty />}
      {data && data.length > 0 && <Table endpoints={data} />}
    </>
  );
}

function wordsOf(endpoints: readonly Seen[]): string {
  const sum = (of: (seen: Seen) => number | undefined) => endpoints.reduce((all, each) => all + (of(each) ?? 0), 0);
  const waiting = sum(({ health }) => health?.jobs.inQueue);
  const running = sum(({ health }) => health?.jobs.inProgress);
  return `${waiting} waiting, ${running} running`;
}

const Empty = () => (
  <section className="empty">
    <h2>No endpoint yet</h2>
    <p>An endpoint takes jobs over HTTP and starts workers for them. This makes one of a folder with a handler:</p>
    <pre>
      <code>npx millrace deploy ./examples/hello</code>
    </pre>
  </section>
);

const Table = ({ endpoints }: { readonly endpoints: readonly Seen[] }) => (
  <div className="table-room">
    <table>
      <thead>
        <tr>
          <th scope="col">Endpoint</th>
          <th scope="col" className="number">
            Waiting
          </th>
          <th scope="col" className="number">
            Running
          </th>
          <th scope="col" className="number">
            Completed
          </th>
          <th scope="col" className="number">
            Failed
          </th>
          <th scope="col" className="number">
            Workers
          </th>
        </tr>
      </thead>
      <tbody>
        {endpoints.map(({ id, name, health, workersMax }) => (
          <tr key={id}>
            <th scope="row">
              <Dot health={health} />{" "}
              <Link to="/endpoints/$endpointId" params={{ endpointId: id }}>
                {name}
              </Link>
            </th>
            <td className="number">{health?.jobs.inQueue ?? "–"}</td>
            <td className="number">{health?.jobs.inProgress ?? "–"}</td>
            <td className="number">{health?.jobs.completed ?? "–"}</td>
            <td className="number">{health?.jobs.failed ?? "–"}</td>
            <td className="number">
              {health ? health.workers.ready + health.workers.initializing : "–"} of {workersMax}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  </div>
);
