import type { StatusBody } from "@millrace/api";
import { jobErrorOf, shortName } from "@millrace/api/words";
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { useMemo } from "react";
import { Confirm } from "../../parts/confirm.js";
import { Snippet } from "../../parts/copy.js";
import { FilterInput } from "../../parts/filter-input.js";
import { Problem } from "../../parts/problem.js";
import { Rows } from "../../parts/rows.js";
import { Status } from "../../parts/status.js";
import { type Column, Table } from "../../parts/table.js";
import { span } from "../../parts/times.js";
import { endpointQuery, healthQuery } from "../../queries.js";
import { send } from "../../session.js";
import { filterOf, isSearch, isShown, withStatus } from "./filter.js";
import { useRequests } from "./use-requests.js";

const route = getRouteApi("/frame/endpoints/$endpointId/");
/** How long the interface keeps a job after its end. */
const retention =
  "A job is kept for 30 minutes after its end if it was sent to /run, and for a few minutes if it was sent to /runsync.";
const states = ["IN_QUEUE", "IN_PROGRESS", "COMPLETED", "FAILED", "CANCELLED", "TIMED_OUT"] as const;

/** An endpoint's jobs, newest first, as they come. */
export function Requests() {
  const { endpointId } = route.useParams();
  const { q = "" } = route.useSearch();
  const navigate = route.useNavigate();
  const filter = filterOf(q);
  const { jobs, error, isLoading, fresh, showFresh, hasMore, loadMore, again } = useRequests(endpointId, filter.status);
  const search = (text: string) =>
    void navigate({ search: ({ q: _, ...others }) => ({ ...others, ...(text && { q: text }) }), replace: true });
  const columns = useMemo(() => columnsOf(endpointId), [endpointId]);
  const shown = jobs.filter((job) => isShown(job, filter));
  return (
    <>
      <p className="filters">
        <FilterInput
          isFirst
          label="Filter requests"
          placeholder='status:failed worker:amber-fox error:"KeyError" or an id'
          value={q}
          change={search}
        />
        {states.map((state) => (
          <button
            key={state}
            type="button"
            className="chip"
            aria-pressed={filter.status === state}
            onClick={() => search(withStatus(q, filter.status === state ? undefined : state))}
          >
            <Status of={state} />
          </button>
        ))}
        <Purge endpointId={endpointId} />
      </p>
      {fresh > 0 && (
        <p>
          <button type="button" className="small" onClick={showFresh}>
            {fresh} new
          </button>
        </p>
      )}
      {error && jobs.length === 0 && <Problem what="The requests" error={error} again={again} />}
      {isLoading && <Rows columns={5} />}
      {!isLoading && !error && jobs.length === 0 && <Empty endpointId={endpointId} isFiltered={q !== ""} />}
      {filter.unknownStatus !== undefined && (
        <p role="alert" className="trouble">
          There is no state “{filter.unknownStatus}”: waiting, running, completed, failed, cancelled, timed-out.
        </p>
      )}
      {jobs.length > 0 && shown.length === 0 && (
        <Unmatched endpointId={endpointId} rows={jobs.length} texts={filter.texts} />
      )}
      {shown.length > 0 && (
        <Table
          label="Requests"
          rows={shown}
          columns={columns}
          keyOf={({ id }) => id}
          onEnd={hasMore ? loadMore : undefined}
        />
      )}
      {jobs.length > 0 && (
        <p className="note">
          {isSearch(filter) ? `${shown.length} match in the ${jobs.length} rows loaded` : `${jobs.length} shown`}
          {hasMore && (
            <>
              {" · "}
              <button type="button" className="small" onClick={loadMore}>
                Older ones
              </button>
            </>
          )}
        </p>
      )}
    </>
  );
}

/** Cancels all that waits; absent while nothing does. */
function Purge({ endpointId }: { readonly endpointId: string }) {
  const { data: endpoint } = useQuery(endpointQuery(endpointId));
  const { data: health } = useQuery(healthQuery(endpointId));
  const waiting = health?.jobs.inQueue ?? 0;
  const name = endpoint?.name || endpointId;
  if (waiting === 0) return null;
  return (
    <Confirm
      verb="Cancel all waiting"
      name={name}
      title={`Cancel all waiting jobs of ${name}?`}
      loss={`${waiting} ${waiting === 1 ? "job is" : "jobs are"} waiting: all of them are cancelled. Jobs that run go on.`}
      act={() => send("POST", `/v2/${endpointId}/purge-queue`)}
    />
  );
}

/** The server filters by state alone: the rest is looked for in the rows that were read, and a whole id can be looked up. */
const Unmatched = ({
  endpointId,
  rows,
  texts,
}: {
  readonly endpointId: string;
  readonly rows: number;
  readonly texts: readonly string[];
}) => (
  <p>
    No job matches in the {rows} rows loaded.
    {texts.length === 1 && (
      <>
        {" "}
        <Link to="/endpoints/$endpointId/jobs/$jobId" params={{ endpointId, jobId: texts[0] as string }}>
          Look for a job with the id {texts[0]}
        </Link>
      </>
    )}
  </p>
);

const Empty = ({ endpointId, isFiltered }: { readonly endpointId: string; readonly isFiltered: boolean }) => (
  <section className="empty">
    <h2>{isFiltered ? "No such request" : "No request yet"}</h2>
    <p>
      {isFiltered ? `${retention} ` : "Send one: "}
      <Link to="/endpoints/$endpointId/try" params={{ endpointId }}>
        try it here
      </Link>
      , or
    </p>
    <Snippet
      text={`curl -s ${location.origin}/v2/${endpointId}/run -H "Authorization: Bearer $MILLRACE_API_KEY" -H "Content-Type: application/json" -d '{"input":{}}'`}
    />
  </section>
);

const columnsOf = (endpointId: string): readonly Column<StatusBody>[] => [
  {
    title: "Job",
    kind: "id",
    of: ({ id }) => (
      <Link to="/endpoints/$endpointId/jobs/$jobId" params={{ endpointId, jobId: id }}>
        {id}
      </Link>
    ),
  },
  { title: "State", of: ({ status }) => <Status of={status} />, by: ({ status }) => status },
  { title: "Waited", kind: "number", of: ({ delayTime }) => span(delayTime), by: ({ delayTime }) => delayTime },
  {
    title: "Ran",
    kind: "number",
    of: ({ status, executionTime }) => (status === "IN_QUEUE" ? "–" : span(executionTime)),
    by: ({ executionTime }) => executionTime,
  },
  {
    title: "Worker",
    of: ({ workerId }) => (workerId ? <span title={workerId}>{shortName(workerId)}</span> : "–"),
    by: ({ workerId }) => workerId,
  },
  {
    title: "Why",
    kind: "why",
    of: ({ error, waitDetail }) => (error === undefined ? waitDetail : jobErrorOf(error).summary),
  },
];
