import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { Attention } from "../parts/attention.js";
import { Snippet } from "../parts/copy.js";
import { Dot } from "../parts/dot.js";
import { FilterInput } from "../parts/filter-input.js";
import { Loaded } from "../parts/loaded.js";
import { type Column, Table } from "../parts/table.js";
import { useRate } from "../parts/use-rate.js";
import { endpointsQuery, hostsQuery, type Seen } from "../queries.js";

const route = getRouteApi("/frame/");

/** All endpoints: what waits, what runs, what needs attention. */
export function Overview() {
  const query = useQuery(endpointsQuery);
  return (
    <>
      <title>Overview · Millrace</title>
      <header className="page-head">
        <h1>Overview</h1>
        <Link to="/endpoints/new" className="button primary">
          New endpoint
        </Link>
      </header>
      <Loaded query={query} what="The list of endpoints" columns={6}>
        {(endpoints) => (endpoints.length === 0 ? <Empty /> : <Full endpoints={endpoints} />)}
      </Loaded>
    </>
  );
}

const Empty = () => (
  <section className="empty">
    <h2>No endpoint yet</h2>
    <p>An endpoint takes jobs over HTTP and starts workers for them. This makes one of a folder with a handler:</p>
    <Snippet text="npx millrace deploy ./examples/hello" />
    <p>
      Or <Link to="/endpoints/new">make one here</Link>.
    </p>
  </section>
);

function Full({ endpoints }: { readonly endpoints: readonly Seen[] }) {
  const { q = "" } = route.useSearch();
  const navigate = route.useNavigate();
  const shown = endpoints.filter(({ id, name }) => `${name} ${id}`.toLowerCase().includes(q.toLowerCase()));
  const sum = (of: (health: NonNullable<Seen["health"]>) => number) =>
    endpoints.reduce((all, { health }) => all + (health ? of(health) : 0), 0);
  return (
    <>
      <dl className="figures">
        <Figure name="waiting" value={sum(({ jobs }) => jobs.inQueue)} />
        <Figure name="running" value={sum(({ jobs }) => jobs.inProgress)} />
        <Figure name="completed" value={sum(({ jobs }) => jobs.completed)} />
        <Figure name="failed" value={sum(({ jobs }) => jobs.failed)} />
        <Figure name="finished / min" value={useRate(sum(({ jobs }) => jobs.completed + jobs.failed))} />
        <Figure name="workers ready" value={sum(({ workers }) => workers.ready)} />
        <Figure name="workers starting" value={sum(({ workers }) => workers.initializing)} />
        <Gpus />
      </dl>
      <Attention endpoints={endpoints} />
      <p className="filters">
        <FilterInput
          isFirst
          label="Filter endpoints"
          placeholder="Filter by name or id  ( / )"
          value={q}
          change={(text) =>
            void navigate({
              to: "/",
              search: ({ sort }: { sort?: string }) => ({ ...(sort && { sort }), ...(text && { q: text }) }),
              replace: true,
            })
          }
        />
        <span className="note">
          {shown.length} of {endpoints.length}
        </span>
      </p>
      <Table label="Endpoints" rows={shown} columns={columns} keyOf={({ id }) => id} />
    </>
  );
}

/** How many GPUs the hosts have, and how many are held; nothing where there is none, or the key sees no hosts. */
function Gpus() {
  const { data: hosts = [] } = useQuery(hostsQuery);
  const gpus = hosts.flatMap((host) => host.gpus);
  if (gpus.length === 0) return null;
  return (
    <div>
      <dt>
        <Link to="/hosts">GPUs held</Link>
      </dt>
      <dd>
        {gpus.filter(({ isHeld }) => isHeld).length} of {gpus.length}
      </dd>
    </div>
  );
}

const Figure = ({ name, value }: { readonly name: string; readonly value: number }) => (
  <div>
    <dt>{name}</dt>
    <dd>{value.toLocaleString("en")}</dd>
  </div>
);

const count = (title: string, of: (health: NonNullable<Seen["health"]>) => number): Column<Seen> => ({
  title,
  kind: "number",
  of: ({ health }) => (health ? of(health).toLocaleString("en") : "–"),
  by: ({ health }) => (health ? of(health) : -1),
});

const columns: readonly Column<Seen>[] = [
  {
    title: "Endpoint",
    by: ({ name }) => name,
    of: ({ id, name, health }) => (
      <>
        <Dot health={health} />{" "}
        <Link to="/endpoints/$endpointId" params={{ endpointId: id }}>
          {name || id}
        </Link>
      </>
    ),
  },
  count("Waiting", ({ jobs }) => jobs.inQueue),
  count("Running", ({ jobs }) => jobs.inProgress),
  count("Completed", ({ jobs }) => jobs.completed),
  count("Failed", ({ jobs }) => jobs.failed),
  {
    title: "Workers",
    kind: "number",
    of: ({ health, workersMax }) =>
      `${health ? health.workers.ready + health.workers.initializing : "–"} of ${workersMax}`,
    by: ({ health }) => (health ? health.workers.ready + health.workers.initializing : -1),
  },
  { title: "Runs on", kind: "why", of: runsOn },
];

function runsOn({ computeType, gpuCount, gpuTypeIds, gpuIds }: Seen): string {
  if (computeType === "CPU") return "CPU";
  return `${gpuCount} × ${gpuTypeIds.join(" or ") || gpuIds || "any GPU"}`;
}
