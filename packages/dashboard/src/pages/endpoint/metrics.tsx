import type { ColdStartsView, Timings } from "@millrace/api";
import { useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { lazy, Suspense, useMemo } from "react";
import type { Series } from "../../parts/chart.js";
import { Loaded } from "../../parts/loaded.js";
import { Rows } from "../../parts/rows.js";
import { Scroll } from "../../parts/scroll.js";
import { span } from "../../parts/times.js";
import { coldStartsQuery, timingsQuery } from "../../queries.js";

const Chart = lazy(() => import("../../parts/chart.js").then((module) => ({ default: module.Chart })));
const route = getRouteApi("/frame/endpoints/$endpointId/metrics");

/** How long jobs waited and ran, and how long workers took to start. */
export function Metrics() {
  const { endpointId } = route.useParams();
  const timings = useQuery(timingsQuery(endpointId));
  const starts = useQuery(coldStartsQuery(endpointId));
  return (
    <>
      <section aria-labelledby="jobs">
        <h2 id="jobs">Jobs</h2>
        <Loaded query={timings} what="The times of jobs" rows={2}>
          {(data) => <Jobs timings={data} />}
        </Loaded>
      </section>
      <section aria-labelledby="starts">
        <h2 id="starts">Starts of workers</h2>
        <Loaded query={starts} what="The times of starts" rows={4}>
          {(data) => <Starts starts={data} />}
        </Loaded>
      </section>
    </>
  );
}

type Percentiles = { readonly p50: number; readonly p90: number; readonly p99: number } | undefined;

function Jobs({ timings }: { readonly timings: Timings }) {
  const { times, series } = useMemo(() => chartOf(timings), [timings]);
  if (timings.jobs === 0)
    return <p className="note">None of the newest jobs that are still kept has been taken by a worker.</p>;
  return (
    <>
      <Quantiles
        caption={`The last ${timings.jobs} jobs that are still kept and that a worker has taken.`}
        rows={[
          ["waited", timings.waitMs],
          ["ran", timings.executionMs],
        ]}
      />
      <Suspense fallback={<Rows columns={1} rows={5} />}>
        <Chart label="Median time that jobs waited and ran, over time" times={times} series={series} format={span} />
      </Suspense>
    </>
  );
}

function chartOf({ buckets }: Timings): { times: number[]; series: Series[] } {
  return {
    times: buckets.map(({ at }) => Date.parse(at)),
    series: [
      { label: "waited (median)", color: "--waiting", values: buckets.map(({ waitMs }) => waitMs) },
      { label: "ran (median)", color: "--running", values: buckets.map(({ executionMs }) => executionMs ?? null) },
    ],
  };
}

function Starts({ starts }: { readonly starts: ColdStartsView }) {
  if (starts.starts === 0) return <p className="note">No worker has started in the last day.</p>;
  return (
    <Quantiles
      caption={starts.starts === 1 ? "One start in the last day." : `${starts.starts} starts in the last day.`}
      rows={[
        ["waited for a place", starts.placeMs],
        ["image", starts.imageMs],
        ["container", starts.createMs],
        ["process", starts.startMs],
        ["until it was ready", starts.readyMs],
        ["all of that", starts.totalMs],
        ["from the first job to the first output", starts.outputMs],
      ]}
    />
  );
}

const Quantiles = ({
  caption,
  rows,
}: {
  readonly caption: string;
  readonly rows: readonly (readonly [string, Percentiles])[];
}) => (
  <Scroll label={caption}>
    <table>
      <caption className="note">{caption}</caption>
      <thead>
        <tr>
          <th scope="col">Step</th>
          {["p50", "p90", "p99"].map((name) => (
            <th key={name} scope="col" className="number">
              {name}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows
          .filter(([, values]) => values !== undefined)
          .map(([title, values]) => (
            <tr key={title}>
              <th scope="row">{title}</th>
              {(["p50", "p90", "p99"] as const).map((name) => (
                <td key={name} className="number">
                  {values ? span(values[name]) : "–"}
                </td>
              ))}
            </tr>
          ))}
      </tbody>
    </table>
  </Scroll>
);
