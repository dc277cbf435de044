import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { Action } from "../parts/action.js";
import { Copy } from "../parts/copy.js";
import { Loaded } from "../parts/loaded.js";
import { arrayPages, More, usePages } from "../parts/pages.js";
import { Attempts } from "../parts/story/attempts.js";
import { type Column, Table } from "../parts/table.js";
import { Ago } from "../parts/times.js";
import { type Delivery, deliveryQuery, endpointsQuery, pageQuery } from "../queries.js";
import { send } from "../session.js";

const route = getRouteApi("/frame/webhooks");
const states = ["pending", "held", "delivered", "failed"];

interface Receiver {
  readonly id: string;
  readonly origin: string;
  readonly state: string;
  readonly lastAttemptAt: string;
  readonly failures: number;
  readonly lastError?: string;
  readonly held: number;
}

/** The most that the server lists at a time. */
const pageRows = 100;

/** Where webhooks go, how that went, and what signs them. */
export function Webhooks() {
  const { state, endpoint, open } = route.useSearch();
  const navigate = route.useNavigate();
  const receivers = usePages({
    key: ["receivers"],
    path: `/v1/webhooks/receivers?limit=${pageRows}`,
    ...arrayPages<Receiver>(pageRows, ({ origin }) => `after=${encodeURIComponent(origin)}`),
  });
  const deliveries = usePages({
    key: ["deliveries", "all"],
    path: `/v1/webhooks/deliveries?${new URLSearchParams({
      limit: String(pageRows),
      ...(state && { state }),
      ...(endpoint && { endpointId: endpoint }),
    })}`,
    ...arrayPages<Delivery>(pageRows, ({ id }) => `before=${id}`),
  });
  const secret = useQuery(pageQuery<{ readonly secret?: string }>("/v1/webhooks/secret"));
  const opened = useQuery({ ...deliveryQuery(open ?? ""), enabled: open !== undefined });
  return (
    <>
      <title>Webhooks · Millrace</title>
      <header className="page-head">
        <h1>Webhooks</h1>
        {secret.data?.secret && <Copy text={secret.data.secret} what="Copy the signing secret" />}
      </header>
      <section aria-labelledby="receivers">
        <h2 id="receivers">Receivers</h2>
        <Loaded query={receivers} what="The receivers" columns={5} rows={2}>
          {(all) =>
            all.length === 0 ? (
              <p className="note">None yet: a job that is submitted with "webhook" makes one.</p>
            ) : (
              <>
                <Table
                  label="Receivers"
                  rows={all}
                  columns={receiverColumns}
                  keyOf={({ id }) => id}
                  sortIn="receiverSort"
                />
                <More list={receivers} verb="More receivers" />
              </>
            )
          }
        </Loaded>
      </section>
      <section aria-labelledby="deliveries">
        <h2 id="deliveries">Deliveries</h2>
        <p className="filters">
          {states.map((each) => (
            <button
              key={each}
              type="button"
              className="chip"
              aria-pressed={state === each}
              onClick={() =>
                void navigate({
                  search: ({ state: _, open: __, ...others }) => ({
                    ...others,
                    ...(state !== each && { state: each }),
                  }),
                })
              }
            >
              {each}
            </button>
          ))}
          <OfEndpoint
            value={endpoint}
            change={(id) =>
              void navigate({
                search: ({ endpoint: _, open: __, ...others }) => ({ ...others, ...(id && { endpoint: id }) }),
              })
            }
          />
        </p>
        <Loaded query={deliveries} what="The deliveries" columns={5}>
          {(all) =>
            all.length === 0 ? (
              <p className="note">None. A delivery is kept for a day after it has ended.</p>
            ) : (
              <>
                <Table
                  label="Deliveries"
                  rows={all}
                  columns={deliveryColumns}
                  keyOf={({ id }) => id}
                  onEnd={deliveries.loadMore}
                />
                <More list={deliveries} isLive />
              </>
            )
          }
        </Loaded>
        {open !== undefined && (
          <Loaded query={opened} what="The delivery" columns={2} rows={2}>
            {(delivery) => <Attempts delivery={delivery} />}
          </Loaded>
        )}
      </section>
    </>
  );
}

/** Whose jobs' deliveries are listed. */
function OfEndpoint({
  value = "",
  change,
}: {
  readonly value: string | undefined;
  readonly change: (id: string) => void;
}) {
  const { data: endpoints = [] } = useQuery(endpointsQuery);
  return (
    <select aria-label="Endpoint" value={value} onChange={({ target }) => change(target.value)}>
      <option value="">of all endpoints</option>
      {value !== "" && !endpoints.some(({ id }) => id === value) && <option value={value}>{value}</option>}
      {endpoints.map(({ id, name }) => (
        <option key={id} value={id}>
          of {name || id}
        </option>
      ))}
    </select>
  );
}

const receiverColumns: readonly Column<Receiver>[] = [
  { title: "Receiver", of: ({ origin }) => origin, by: ({ origin }) => origin },
  { title: "State", of: ({ state }) => state, by: ({ state }) => state },
  {
    title: "Last attempt",
    of: ({ lastAttemptAt }) => <Ago at={lastAttemptAt} />,
    by: ({ lastAttemptAt }) => lastAttemptAt,
  },
  { title: "Failed in a row", kind: "number", of: ({ failures }) => failures, by: ({ failures }) => failures },
  { title: "Held", kind: "number", of: ({ held }) => held, by: ({ held }) => held },
  { title: "Why", kind: "why", of: ({ lastError }) => lastError },
  {
    title: "Actions",
    of: ({ id, state }) => {
      const [verb, path] = state === "paused" ? ["Resume", "resume"] : ["Pause", "pause"];
      return <Action verb={verb} act={() => send("POST", `/v1/webhooks/receivers/${id}/${path}`)} />;
    },
  },
];

const deliveryColumns: readonly Column<Delivery>[] = [
  {
    title: "Delivery",
    kind: "id",
    of: ({ id }) => (
      <Link to="/webhooks" search={(search) => ({ ...search, open: id })}>
        {id}
      </Link>
    ),
  },
  { title: "Job", kind: "id", of: ({ jobId }) => jobId },
  { title: "To", kind: "why", of: ({ url }) => url, by: ({ url }) => url },
  { title: "State", of: ({ state }) => state, by: ({ state }) => state },
  { title: "Attempts", kind: "number", of: ({ attempts }) => attempts.length, by: ({ attempts }) => attempts.length },
  { title: "Last", of: ({ attempts }) => <Ago at={attempts.at(-1)?.at} /> },
];
