import { type AuditEntry, type AuditPage, auditActions, type User } from "@millrace/api";
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { Day, timesOf } from "../parts/days.js";
import { FilterInput } from "../parts/filter-input.js";
import { Changes } from "../parts/form/changes.js";
import { Loaded } from "../parts/loaded.js";
import { More, usePages } from "../parts/pages.js";
import { type Column, Table } from "../parts/table.js";
import { Ago } from "../parts/times.js";
import { listQuery, pageQuery } from "../queries.js";

const route = getRouteApi("/frame/audit");
const keyOf = ({ at, resource, action }: AuditEntry) => `${at} ${resource} ${action}`;

/** Who changed what, newest first, with what it was before. */
export function Audit() {
  const { open, ...filters } = route.useSearch();
  const { action = "", resource = "", user = "", key = "", since = "", until = "" } = filters;
  const navigate = useNavigate();
  const filter = new URLSearchParams({
    limit: "100",
    ...(action && { action }),
    ...(resource && { resource }),
    ...(user && { userId: user }),
    ...(key && { keyId: key }),
    ...timesOf(since, until),
  });
  const list = usePages({
    key: ["audit"],
    path: `/v1/audit?${filter}`,
    rowsOf: ({ entries }: AuditPage) => entries,
    next: ({ nextCursor }) => nextCursor && `cursor=${nextCursor}`,
  });
  const search = (changed: Partial<Record<"action" | "resource" | "user" | "key" | "since" | "until", string>>) => {
    const next = { ...filters, ...changed };
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
        <select aria-label="Action" value={action} onChange={({ target }) => search({ action: target.value })}>
          <option value="">all actions</option>
          {auditActions.map((each) => (
            <option key={each}>{each}</option>
          ))}
        </select>
        <FilterInput
          isFirst
          label="Resource"
          placeholder="a resource's id"
          value={resource}
          change={(text) => search({ resource: text })}
        />
        <ByUser value={user} change={(id) => search({ user: id })} />
        <Day label="From" value={since} change={(day) => search({ since: day })} />
        <Day label="To" value={until} change={(day) => search({ until: day })} />
        {key !== "" && (
          <button type="button" className="chip" aria-pressed onClick={() => search({ key: "" })}>
            only the key {key} ×
          </button>
        )}
      </p>
      <Loaded query={list} what="The audit log" columns={5}>
        {(entries) =>
          entries.length === 0 ? (
            <section className="empty">
              <h2>{Object.keys(filters).length > 0 ? "No such change" : "No change yet"}</h2>
              <p>
                Every change of endpoints, templates, keys and the rest stands here: who made it, when, and what it was
                before.
              </p>
            </section>
          ) : (
            <>
              <Table
                label="Changes"
                rows={entries}
                columns={columns}
                keyOf={(entry) => `${keyOf(entry)} ${entry.requestId}`}
                onEnd={list.loadMore}
              />
              <More list={list} />
            </>
          )
        }
      </Loaded>
      {open !== undefined && <Opened of={open} listed={list.data?.find((entry) => keyOf(entry) === open)} />}
    </>
  );
}

/** Whose changes are listed; there is no choice for whoever sees only their own. */
function ByUser({ value, change }: { readonly value: string; readonly change: (id: string) => void }) {
  const { data: users = [] } = useQuery(listQuery<User>("/v1/users"));
  if (users.length < 2) return null;
  return (
    <select aria-label="User" value={value} onChange={({ target }) => change(target.value)}>
      <option value="">all users</option>
      {users.map(({ id, name }) => (
        <option key={id} value={id}>
          {name}
        </option>
      ))}
    </select>
  );
}

/** An entry that is open: one of the list, or an older one that is looked up by its key. */
function Opened({ of, listed }: { readonly of: string; readonly listed: AuditEntry | undefined }) {
  const [at = "", resource = "", action = ""] = of.split(" ");
  const isKey = !Number.isNaN(Date.parse(at)) && action !== "";
  const since = isKey ? new Date(at).toISOString() : "";
  const until = isKey ? new Date(Date.parse(at) + 1).toISOString() : "";
  const query = useQuery({
    ...pageQuery<AuditPage>(`/v1/audit?${new URLSearchParams({ action, resource, since, until })}`),
    enabled: isKey && listed === undefined,
  });
  if (listed) return <Entry entry={listed} />;
  if (!isKey) return <Gone />;
  return (
    <Loaded query={query} what="This change" columns={3} rows={2}>
      {({ entries: [entry] }) => (entry ? <Entry entry={entry} /> : <Gone />)}
    </Loaded>
  );
}

const Gone = () => <p className="note">The change that this address names is not in the log, or no longer.</p>;

const Entry = ({ entry }: { readonly entry: AuditEntry }) => (
  <section className="panel" aria-labelledby="opened">
    <h2 id="opened">
      {entry.action} <span className="id">{entry.resource}</span>
    </h2>
    <p className="note">
      with the key {entry.keyPrefix}… of {entry.userId}
      {entry.address && `, from ${entry.address}`}
    </p>
    <Changes
      before={entry.before ?? {}}
      after={entry.after ?? {}}
      names={Object.keys({ ...entry.before, ...entry.after })}
    />
  </section>
);

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
  {
    title: "Key",
    kind: "id",
    of: ({ keyId, keyPrefix }) => (
      <Link to="/audit" search={(search) => ({ ...search, key: keyId })} title="Only changes made with this key">
        {keyPrefix}
      </Link>
    ),
  },
  { title: "User", kind: "id", of: ({ userId }) => userId },
  { title: "From", of: ({ address }) => address ?? "–" },
];
