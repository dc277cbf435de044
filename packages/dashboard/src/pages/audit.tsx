import type { AuditEntry, AuditPage } from "@millrace/api";
import { useInfiniteQuery } from "@tanstack/react-query";
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { FilterInput } from "../parts/filter-input.js";
import { Changes } from "../parts/form/changes.js";
import { Problem } from "../parts/problem.js";
import { Rows } from "../parts/rows.js";
import { type Column, Table } from "../parts/table.js";
import { Ago } from "../parts/times.js";
import { get } from "../session.js";

const route = getRouteApi("/frame/audit");
const keyOf = ({ at, resource, action }: AuditEntry) => `${at} ${resource} ${action}`;

/** Who changed what, newest first, with what it was before. */
export function Audit() {
  const { action = "", resource = "", open } = route.useSearch();
  const navigate = useNavigate();
  const filter = new URLSearchParams({ limit: "100", ...(action && { action }), ...(resource && { resource }) });
  const query = useInfiniteQuery({
    queryKey: ["audit", String(filter)],
    queryFn: ({ pageParam }) => get<AuditPage>(`/v1/audit?${filter}${pageParam ? `&cursor=${pageParam}` : ""}`),
    initialPageParam: "",
    getNextPageParam: ({ nextCursor }) => nextCursor,
  });
  const entries = query.data?.pages.flatMap((page) => page.entries) ?? [];
  const opened = entries.find((entry) => keyOf(entry) === open);
  const search = (changed: { action?: string; resource?: string }) => {
    const next = { action, resource, ...changed };
    const filled = Object.fromEntries(Object.entries(next).filter(([, value]) => value !== ""));
    void navigate({ to: "/audit", search: filled, replace: true });
  };
  return (
    <>
      <title>Audit · Millrace</title>
      <header className="page-head">
        <h1>Audit</h1>
      </header>
      <p className="filters">
        <FilterInput
          isFirst
          label="Action"
          placeholder="an action, such as endpoint.update"
          value={action}
          change={(text) => search({ action: text })}
        />
        <FilterInput
          label="Resource"
          placeholder="a resource's id"
          value={resource}
          change={(text) => search({ resource: text })}
        />
      </p>
      {query.isPending && <Rows columns={5} />}
      {query.error && !query.data && (
        <Problem what="The audit log" error={query.error} again={() => void query.refetch()} />
      )}
      {query.data && entries.length === 0 && (
        <section className="empty">
          <h2>{action || resource ? "No such change" : "No change yet"}</h2>
          <p>
            Every change of endpoints, templates, keys and the rest stands here: who made it, when, and what it was
            before.
          </p>
        </section>
      )}
      {entries.length > 0 && (
        <Table
          label="Changes"
          rows={entries}
          columns={columns}
          keyOf={(entry) => `${keyOf(entry)} ${entry.requestId}`}
          onEnd={query.hasNextPage && !query.isFetching ? () => void query.fetchNextPage() : undefined}
        />
      )}
      {query.hasNextPage && (
        <p>
          <button type="button" className="small" onClick={() => void query.fetchNextPage()}>
            Older ones
          </button>
        </p>
      )}
      {opened && (
        <section className="panel" aria-labelledby="opened">
          <h2 id="opened">
            {opened.action} <span className="id">{opened.resource}</span>
          </h2>
          <p className="note">
            with the key {opened.keyPrefix}… of {opened.userId}
            {opened.address && `, from ${opened.address}`}
          </p>
          <Changes
            before={opened.before ?? {}}
            after={opened.after ?? {}}
            names={Object.keys({ ...opened.before, ...opened.after })}
          />
        </section>
      )}
    </>
  );
}

const columns: readonly Column<AuditEntry>[] = [
  { title: "When", of: ({ at }) => <Ago at={at} /> },
  {
    title: "What",
    of: (entry) => (
      <Link to="/audit" search={(search) => ({ ...search, open: keyOf(entry) })}>
        {entry.action}
      </Link>
    ),
  },
  { title: "Resource", kind: "id", of: ({ resource }) => resource },
  { title: "Key", kind: "id", of: ({ keyPrefix }) => keyPrefix },
  { title: "User", kind: "id", of: ({ userId }) => userId },
  { title: "From", of: ({ address }) => address ?? "–" },
];
