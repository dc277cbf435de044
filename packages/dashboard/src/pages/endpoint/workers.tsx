import type { Worker } from "@millrace/api";
import { shortName } from "@millrace/api/words";
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { useMemo } from "react";
import { Action } from "../../parts/action.js";
import { Confirm } from "../../parts/confirm.js";
import { Loaded } from "../../parts/loaded.js";
import { Cut } from "../../parts/pages.js";
import { Log } from "../../parts/story/log.js";
import { Phases } from "../../parts/story/phases.js";
import { type Column, Table } from "../../parts/table.js";
import { Ago, span } from "../../parts/times.js";
import { endpointQuery, workerQuery, workersQuery } from "../../queries.js";
import { send } from "../../session.js";

const route = getRouteApi("/frame/endpoints/$endpointId/workers");

/** The most that the server lists, those that ended included. */
const workersListed = 500;

/** An endpoint's workers: what they do, how they started, what they print. */
export function Workers() {
  const { endpointId } = route.useParams();
  const { worker } = route.useSearch();
  const workers = useQuery(workersQuery(endpointId));
  const { data: endpoint } = useQuery(endpointQuery(endpointId));
  const canPause = endpoint?.type === "QB" && endpoint.flashBootType !== "OFF";
  const columns = useMemo(() => columnsOf(endpointId, canPause), [endpointId, canPause]);
  return (
    <>
      <p className="buttons">
        <Action verb="Replace all workers" act={() => send("POST", `/v1/endpoints/${endpointId}/restart`)} />
        {workers.data?.some(({ desiredStatus, state }) => desiredStatus === "RUNNING" && hasJobs(state)) && (
          <Confirm
            verb="Replace all now"
            title="Replace all workers now?"
            name={endpoint?.name ?? endpointId}
            loss="Workers that are busy are stopped too: what their jobs have done is lost, and they start again on other workers."
            act={() => send("POST", `/v1/endpoints/${endpointId}/restart?now=true`)}
          />
        )}
        <span className="note">
          Idle ones at once, busy ones after their job. A worker that is stopped finishes its job first, unless it is
          then stopped now: its job goes back to the queue.
        </span>
      </p>
      <Loaded query={workers} what="The workers" columns={6}>
        {(all) =>
          all.length === 0 ? (
            <section className="empty">
              <h2>No workers now</h2>
              <p>The first job starts one. Set workersMin to keep some ready all the time.</p>
            </section>
          ) : (
            <>
              <Table label="Workers" rows={all} columns={columns} keyOf={({ id }) => id} />
              <Cut rows={all.length} most={workersListed} what="workers are shown" />
              <Chosen id={worker} listed={all.find(({ id }) => id === worker)} />
            </>
          )
        }
      </Loaded>
    </>
  );
}

/** Whether a worker may hold jobs that would start again without it. */
const hasJobs = (state: Worker["state"]): boolean => state === "running" || state === "closing";

const columnsOf = (endpointId: string, canPause: boolean): readonly Column<Worker>[] => [
  {
    title: "Worker",
    of: ({ id }) => (
      <Link
        to="/endpoints/$endpointId/workers"
        params={{ endpointId }}
        search={(others) => ({ ...others, worker: id })}
        title={id}
      >
        {shortName(id)}
      </Link>
    ),
  },
  { title: "State", of: ({ state }) => state, by: ({ state }) => state },
  { title: "Since", of: ({ since }) => <Ago at={since} />, by: ({ since }) => since },
  { title: "Jobs", kind: "number", of: ({ jobs }) => jobs, by: ({ jobs }) => jobs },
  { title: "Version", kind: "number", of: ({ version }) => version, by: ({ version }) => version },
  {
    title: "Started in",
    kind: "number",
    of: ({ coldStart: { totalMs } }) => (totalMs === undefined ? "–" : span(totalMs)),
    by: ({ coldStart: { totalMs } }) => totalMs ?? 0,
  },
  { title: "GPUs", of: ({ gpus }) => gpus.map(({ name }) => name).join(", ") || "–" },
  { title: "Why", kind: "why", of: ({ doing, why }) => doing ?? why },
  {
    title: "Actions",
    of: ({ id, state, desiredStatus }) =>
      desiredStatus === "RUNNING" && (
        <span className="buttons">
          {state === "closing" ? (
            <Action verb="Stop now" act={() => send("POST", `/v1/workers/${id}/stop?now=true`)} />
          ) : (
            <Action verb="Stop" act={() => send("POST", `/v1/workers/${id}/stop`)} />
          )}
          {state === "idle" && canPause && <Action verb="Pause" act={() => send("POST", `/v1/workers/${id}/pause`)} />}
        </span>
      ),
  },
];

/** A worker that was chosen: one of the list, or an older one. */
function Chosen({ id, listed }: { readonly id: string | undefined; readonly listed: Worker | undefined }) {
  const older = useQuery({ ...workerQuery(id ?? ""), enabled: id !== undefined && listed === undefined });
  if (listed) return <Shown worker={listed} />;
  if (id === undefined) return <p className="note">Choose a worker to see how it started and what it prints.</p>;
  return (
    <Loaded query={older} what="The worker" columns={3} rows={2}>
      {(worker) => <Shown worker={worker} />}
    </Loaded>
  );
}

function Shown({ worker }: { readonly worker: Worker }) {
  const navigate = route.useNavigate();
  const { id, state, why, exit } = worker;
  return (
    <section aria-labelledby="chosen" className="panel">
      <h2 id="chosen">
        {shortName(id)} <span className="note id">{id}</span>
      </h2>
      <p>
        {state}
        {why && `: ${why}`}
        {exit?.code !== undefined && ` (exit code ${exit.code})`}
      </p>
      <Phases worker={worker} />
      <h3>Log</h3>
      <Log
        key={id}
        path={`/v1/workers/${id}/logs?follow=true`}
        label={`Log of ${shortName(id)}`}
        empty="It has printed nothing yet."
      />
      <p className="buttons">
        <button
          type="button"
          className="small"
          onClick={() => void navigate({ search: ({ worker: _, ...others }) => others })}
        >
          Close
        </button>
      </p>
    </section>
  );
}
