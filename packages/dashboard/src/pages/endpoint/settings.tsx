import { type Endpoint, EndpointUpdate, madeOf } from "@millrace/api";
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { Confirm } from "../../parts/confirm.js";
import { catalogControls } from "../../parts/form/catalog.js";
import { Changes } from "../../parts/form/changes.js";
import { Fields } from "../../parts/form/fields.js";
import { changesOf, fieldsOf, type Values } from "../../parts/form/schema.js";
import { Loaded } from "../../parts/loaded.js";
import { useSave } from "../../parts/saves.js";
import { Trouble } from "../../parts/trouble.js";
import { endpointQuery, healthQuery } from "../../queries.js";
import { send } from "../../session.js";

const route = getRouteApi("/frame/endpoints/$endpointId/settings");
/** What people change most often comes first. */
const first = [
  "name",
  "workersMin",
  "workersMax",
  "idleTimeout",
  "scalerType",
  "scalerValue",
  "executionTimeoutMs",
  "flashBootType",
  "env",
  "templateId",
];
const others = Object.keys(EndpointUpdate.properties).filter((name) => !first.includes(name));
const fields = fieldsOf(EndpointUpdate, [...first, ...others]);
/** The fields whose change makes a new version; the last two are other names of settings above. */
const ofWorkers: readonly string[] = [...madeOf, "gpuIds", "networkVolumeId"];

/** Every setting of an endpoint, explained, and what saving will do. */
export function Settings() {
  const { endpointId } = route.useParams();
  const query = useQuery(endpointQuery(endpointId));
  return (
    <Loaded query={query} what="The settings" columns={2}>
      {(endpoint) => (
        <>
          <Form key={endpoint.id} endpoint={endpoint} />
          <Deletion endpoint={endpoint} />
        </>
      )}
    </Loaded>
  );
}

/** What is typed stays, whatever a colleague saves meanwhile: the form says so, and can begin anew. */
function Form({ endpoint }: { readonly endpoint: Endpoint }) {
  const [before, setBefore] = useState<Values>(endpoint);
  const [values, setValues] = useState<Values>(endpoint);
  const [round, setRound] = useState(0);
  const changes = changesOf(fields, before, values);
  const names = Object.keys(changes);
  const begin = (from: Values) => {
    setBefore(from);
    setValues(from);
    setRound(round + 1); // fields that keep what is typed themselves begin anew
  };
  const save = useSave((send) => send<Endpoint>("PATCH", `/v1/endpoints/${endpoint.id}`, changes), begin);
  const isOld = Object.keys(changesOf(fields, before, endpoint as Values)).length > 0;
  return (
    <form
      className="form"
      onSubmit={(event) => {
        event.preventDefault();
        save.run();
      }}
    >
      <Fields key={round} fields={fields} values={values} change={setValues} controls={catalogControls} />
      <div className="save">
        {isOld && !save.isBusy && (
          <p role="status" className="note">
            These settings have been changed elsewhere.{" "}
            <button type="button" className="small" onClick={() => begin(endpoint)}>
              Load them
            </button>
          </p>
        )}
        {names.length > 0 && (
          <>
            <Changes before={before} after={changes} names={names} />
            <Effect
              endpointId={endpoint.id}
              isRelease={names.some((name) => ofWorkers.includes(name))}
              version={endpoint.version}
            />
          </>
        )}
        <Trouble error={save.error} />
        <p className="buttons">
          <button type="submit" className="primary" disabled={names.length === 0 || save.isBusy}>
            Save
          </button>
          <button type="button" disabled={names.length === 0} onClick={() => begin(before)}>
            Undo
          </button>
        </p>
      </div>
    </form>
  );
}

function Effect({
  endpointId,
  isRelease,
  version,
}: {
  readonly endpointId: string;
  readonly isRelease: boolean;
  readonly version: number;
}) {
  const { data } = useQuery(healthQuery(endpointId));
  if (!isRelease) return <p className="note">It applies at once, and no worker is replaced.</p>;
  const busy = data?.workers.running ?? 0;
  const all = busy + (data?.workers.idle ?? 0);
  return (
    <p className="note">
      This makes version {version + 1} and replaces {all} workers{busy > 0 && `; ${busy} finish their jobs first`}.
    </p>
  );
}

function Deletion({ endpoint: { id, name } }: { readonly endpoint: Endpoint }) {
  const navigate = useNavigate();
  async function remove() {
    await send("PATCH", `/v1/endpoints/${id}`, { workersMin: 0, workersMax: 0 });
    await send("DELETE", `/v1/endpoints/${id}`);
    await navigate({ to: "/" });
  }
  return (
    <section aria-labelledby="delete" className="danger-zone">
      <h2 id="delete">Delete</h2>
      <Confirm
        verb="Delete"
        name={name || id}
        loss="Its workers stop, its jobs that wait are cancelled, and its results are gone."
        act={remove}
      />
    </section>
  );
}
