import type { HostView } from "@millrace/api";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Loaded } from "../parts/loaded.js";
import { type Column, Table } from "../parts/table.js";
import { Ago } from "../parts/times.js";
import { endpointsQuery, hostsQuery } from "../queries.js";

/** The machines that run workers, their GPUs, and who holds them. */
export function Hosts() {
  const query = useQuery(hostsQuery);
  return (
    <>
      <title>Hosts · Millrace</title>
      <header className="page-head">
        <h1>Hosts and GPUs</h1>
      </header>
      <Loaded query={query} what="The hosts" columns={4}>
        {(hosts) => hosts.map((host) => <Host key={host.id} host={host} />)}
      </Loaded>
    </>
  );
}

function Host({ host }: { readonly host: HostView }) {
  return (
    <section className="panel" aria-labelledby={`host-${host.id}`}>
      <h2 id={`host-${host.id}`}>{host.cluster ? `Cluster ${host.cluster.name}` : `Host ${host.id}`}</h2>
      <p>
        {host.isAlive ? "alive" : "silent"}
        {host.seenAt && (
          <>
            , seen <Ago at={host.seenAt} />
          </>
        )}
        {host.location && ` · in ${host.location}`}
        {!host.cluster && ` · ${host.cpuCount} CPUs, ${host.memoryInGb.toFixed(0)} GB of memory`} · {host.workers}{" "}
        {host.workers === 1 ? "worker" : "workers"}
      </p>
      {host.cluster ? (
        <ClusterGpus id={host.id} types={host.cluster.gpuTypes} />
      ) : host.gpus.length === 0 ? (
        <p className="note">No GPU{host.gpuProblem && `: ${host.gpuProblem}`}</p>
      ) : (
        <Table label={`GPUs of host ${host.id}`} rows={host.gpus} columns={columns} keyOf={({ id }) => id} />
      )}
    </section>
  );
}

type GpuType = NonNullable<NonNullable<HostView["cluster"]>["gpuTypes"]>[number];

/** A cluster does not tell its GPUs apart. */
function ClusterGpus({ id, types }: { readonly id: string; readonly types: readonly GpuType[] | undefined }) {
  if (!types) return <p className="note">Its GPUs are not known: the service may not list its nodes.</p>;
  if (types.length === 0) return <p className="note">No node has a label that names the type of its GPUs.</p>;
  return <Table label={`GPUs of cluster ${id}`} rows={types} columns={typeColumns} keyOf={({ name }) => name} />;
}

const typeColumns: readonly Column<GpuType>[] = [
  { title: "GPU", of: ({ name }) => name, by: ({ name }) => name },
  { title: "Memory (GB)", kind: "number", of: ({ memoryInGb }) => memoryInGb.toFixed(0) },
  { title: "GPUs", kind: "number", of: ({ count }) => count, by: ({ count }) => count },
  { title: "Held by workers", kind: "number", of: ({ held }) => held, by: ({ held }) => held },
];

type Gpu = HostView["gpus"][number];

const columns: readonly Column<Gpu>[] = [
  { title: "GPU", of: ({ name }) => name, by: ({ name }) => name },
  { title: "Id", kind: "id", of: ({ id }) => id },
  {
    title: "Memory (GB)",
    kind: "number",
    of: ({ memoryInGb }) => memoryInGb.toFixed(0),
    by: ({ memoryInGb }) => memoryInGb,
  },
  { title: "Held by", of: (gpu) => <Holder gpu={gpu} /> },
];

function Holder({ gpu }: { readonly gpu: Gpu }) {
  const { data: endpoints = [] } = useQuery(endpointsQuery);
  if (!gpu.isHeld) return "nobody";
  const endpoint = endpoints.find(({ id }) => id === gpu.endpointId);
  if (endpoint)
    return (
      <Link to="/endpoints/$endpointId/workers" params={{ endpointId: endpoint.id }}>
        {endpoint.name}
      </Link>
    );
  return gpu.endpointId ?? "another user";
}
