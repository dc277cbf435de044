import type { Endpoint, Pod } from "@millrace/api";
import { useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { lazy, Suspense, useMemo } from "react";
import type { Series } from "../parts/chart.js";
import { Day, timesOf } from "../parts/days.js";
import { Loaded } from "../parts/loaded.js";
import { Rows } from "../parts/rows.js";
import { type Column, Table } from "../parts/table.js";
import { span } from "../parts/times.js";
import { endpointsQuery, listQuery } from "../queries.js";
import { PriceList } from "./prices.js";

const Chart = lazy(() => import("../parts/chart.js").then((module) => ({ default: module.Chart })));
const route = getRouteApi("/frame/usage");

interface BillRecord {
  readonly time: string;
  readonly amount: number;
  readonly timeBilledMs: number;
  readonly endpointId?: string;
  readonly podId?: string;
  /** Empty if there was none. */
  readonly gpuTypeId?: string | null;
}

/** How far back each choice looks, and in which steps. */
const ranges = {
  day: { days: 1, bucketSize: "hour" },
  month: { days: 30, bucketSize: "day" },
  year: { days: 365, bucketSize: "month" },
} as const;
type Range = keyof typeof ranges;
const hourMs = 3_600_000;
const againMs = 60_000;

/** The last day, month or year, in whole hours: the same question has the same answer for a while. */
function lately(range: string): { startTime: string; bucketSize: string } {
  const { days, bucketSize } = ranges[range as Range] ?? ranges.month;
  const now = Math.ceil(Date.now() / hourMs) * hourMs;
  return { startTime: new Date(now - days * 24 * hourMs).toISOString(), bucketSize };
}

/** The days that were chosen, in steps that fit them. */
function periodOf({ since, until }: { since?: string; until?: string }) {
  const to = until ? Date.parse(until) : Date.now();
  const days = (to - Date.parse(since ?? new Date(to - 30 * 24 * hourMs).toISOString())) / (24 * hourMs);
  const bucketSize = days <= 3 ? "hour" : days <= 120 ? "day" : "month";
  return { ...(since && { startTime: since }), ...(until && { endTime: until }), bucketSize };
}

const gpuOf = ({ gpuTypeId }: BillRecord): string => gpuTypeId || "no GPU";

/** What ran, for how long, and what it costs. */
export function Usage() {
  const { range = "month", since = "", until = "", by } = route.useSearch();
  const navigate = route.useNavigate();
  const isByGpu = by === "gpu";
  const chosen = timesOf(since, until);
  const hasDays = since !== "" || until !== "";
  const period = new URLSearchParams({
    ...(hasDays ? periodOf(chosen) : lately(range)),
    timeZone: Intl.DateTimeFormat().resolvedOptions().timeZone,
  });
  // it grows as time passes, and nothing happens then
  const again = { refetchInterval: againMs };
  const endpoints = useQuery({
    ...listQuery<BillRecord>(`/v1/billing/endpoints?${period}&grouping=${isByGpu ? "gpuTypeId" : "endpointId"}`),
    ...again,
  });
  const pods = useQuery({
    ...listQuery<BillRecord>(`/v1/billing/pods?${period}&grouping=${isByGpu ? "gpuTypeId" : "podId"}`),
    ...again,
  });
  const volumes = useQuery({ ...listQuery<VolumeRecord>(`/v1/billing/networkvolumes?${period}`), ...again });
  function choose(days: { since?: string; until?: string }) {
    const next = { since, until, ...days };
    const filled = Object.fromEntries(Object.entries(next).filter(([, day]) => day !== ""));
    void navigate({ search: ({ since: _, until: __, ...others }) => ({ ...others, ...filled }) });
  }
  return (
    <>
      <title>Usage · Millrace</title>
      <header className="page-head">
        <h1>Usage and cost</h1>
        <p className="filters">
          {(Object.keys(ranges) as Range[]).map((each) => (
            <button
              key={each}
              type="button"
              className="chip"
              aria-pressed={!hasDays && range === each}
              onClick={() =>
                void navigate({ search: ({ since: _, until: __, ...others }) => ({ ...others, range: each }) })
              }
            >
              last {each}
            </button>
          ))}
          <Day label="From" value={since} change={(day) => choose({ since: day })} />
          <Day label="To" value={until} change={(day) => choose({ until: day })} />
          <button
            type="button"
            className="chip"
            aria-pressed={isByGpu}
            onClick={() =>
              void navigate({ search: ({ by: _, ...others }) => ({ ...others, ...(!isByGpu && { by: "gpu" }) }) })
            }
          >
            by GPU type
          </button>
        </p>
      </header>
      <section aria-labelledby="of-endpoints">
        <h2 id="of-endpoints">Endpoints</h2>
        <Loaded query={endpoints} what="The bill of endpoints" columns={3}>
          {(records) => (
            <Bill records={records} idOf={isByGpu ? gpuOf : ({ endpointId }) => endpointId ?? ""} what="workers" />
          )}
        </Loaded>
      </section>
      <section aria-labelledby="of-pods">
        <h2 id="of-pods">Pods</h2>
        <Loaded query={pods} what="The bill of pods" columns={3}>
          {(records) => <Bill records={records} idOf={isByGpu ? gpuOf : ({ podId }) => podId ?? ""} what="pods" />}
        </Loaded>
      </section>
      <section aria-labelledby="of-volumes">
        <h2 id="of-volumes">Network volumes</h2>
        <Loaded query={volumes} what="The bill of volumes" columns={3}>
          {(records) => <VolumeBill records={records} />}
        </Loaded>
      </section>
      <PriceList />
    </>
  );
}

interface VolumeRecord {
  readonly time: string;
  readonly amount: number;
  readonly diskSpaceBilledGb: number;
}

function VolumeBill({ records }: { readonly records: readonly VolumeRecord[] }) {
  if (records.length === 0) return <p className="note">No volume was kept in this time.</p>;
  return (
    <Table
      label="Bill of volumes"
      rows={records}
      columns={volumeColumns}
      keyOf={({ time }) => time}
      sortIn="volumeSort"
    />
  );
}

const volumeColumns: readonly Column<VolumeRecord>[] = [
  { title: "From", of: ({ time }) => new Date(time).toLocaleString(), by: ({ time }) => time },
  {
    title: "GB",
    kind: "number",
    of: ({ diskSpaceBilledGb }) => diskSpaceBilledGb,
    by: ({ diskSpaceBilledGb }) => diskSpaceBilledGb,
  },
  { title: "Cost", kind: "number", of: ({ amount }) => amount.toFixed(4), by: ({ amount }) => amount },
];

interface Line {
  readonly id: string;
  readonly name: string;
  readonly ms: number;
  readonly amount: number;
}

function Bill({
  records,
  idOf,
  what,
}: {
  readonly records: readonly BillRecord[];
  readonly idOf: (record: BillRecord) => string;
  readonly what: "workers" | "pods";
}) {
  const { data: endpoints = [] } = useQuery(endpointsQuery);
  const { data: pods = [] } = useQuery(listQuery<Pod>("/v1/pods"));
  const { times, series } = useMemo(() => chartOf(records), [records]);
  if (records.length === 0) return <p className="note">No {what} ran in this time.</p>;
  const names = new Map(([...endpoints, ...pods] as Pick<Endpoint, "id" | "name">[]).map(({ id, name }) => [id, name]));
  const lines = Object.entries(Object.groupBy(records, idOf)).map(([id, all = []]) => ({
    id,
    name: names.get(id) ?? (all[0]?.gpuTypeId === undefined ? `${id} (deleted)` : id),
    ms: all.reduce((sum, { timeBilledMs }) => sum + timeBilledMs, 0),
    amount: all.reduce((sum, { amount }) => sum + amount, 0),
  }));
  return (
    <>
      {times.length > 1 && (
        <Suspense fallback={<Rows columns={1} rows={5} />}>
          <Chart label={`Time of ${what}, over time`} times={times} series={series} format={span} />
        </Suspense>
      )}
      <Table
        label={`Bill of ${what}`}
        rows={lines.toSorted((a, b) => b.amount - a.amount || b.ms - a.ms)}
        columns={columns}
        keyOf={({ id }) => id}
        sortIn={what === "pods" ? "podSort" : "sort"}
      />
    </>
  );
}

const columns: readonly Column<Line>[] = [
  { title: "Name", of: ({ name }) => name, by: ({ name }) => name },
  { title: "Ran for", kind: "number", of: ({ ms }) => span(ms), by: ({ ms }) => ms },
  { title: "Cost", kind: "number", of: ({ amount }) => amount.toFixed(4), by: ({ amount }) => amount },
];

function chartOf(records: readonly BillRecord[]): { times: number[]; series: Series[] } {
  const buckets = Object.entries(Object.groupBy(records, ({ time }) => time)).sort(([a], [b]) => a.localeCompare(b));
  const values = buckets.map(([, all = []]) => all.reduce((sum, { timeBilledMs }) => sum + timeBilledMs, 0));
  return {
    times: buckets.map(([time]) => Date.parse(time)),
    series: [{ label: "time", color: "--accent", isArea: true, values }],
  };
}
