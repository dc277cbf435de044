import type { ScalingDecision } from "@millrace/api";
import { useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { lazy, Suspense, useMemo, useState } from "react";
import type { Series } from "../../parts/chart.js";
import { Loaded } from "../../parts/loaded.js";
import { Cut } from "../../parts/pages.js";
import { Rows } from "../../parts/rows.js";
import { type Column, Table } from "../../parts/table.js";
import { Ago } from "../../parts/times.js";
import { scalingQuery } from "../../queries.js";
import { WhatIf } from "./what-if.js";

const Chart = lazy(() => import("../../parts/chart.js").then((module) => ({ default: module.Chart })));
const route = getRouteApi("/frame/endpoints/$endpointId/scaling");

/** The most that the server lists. */
const decisionsListed = 500;

/** What waited and ran, how many workers there were, and why the scaler did what it did. */
export function Scaling() {
  const { endpointId } = route.useParams();
  const query = useQuery(scalingQuery(endpointId));
  return (
    <Loaded query={query} what="The scaler's decisions" columns={3}>
      {(decisions) => (
        <>
          {decisions.length === 0 ? (
            <section className="empty">
              <h2>No decision yet</h2>
              <p>
                The scaler decides when the first job comes. Its decisions of the last day stand here, each with its
                reason.
              </p>
            </section>
          ) : (
            <OverTime decisions={decisions} />
          )}
          <WhatIf endpointId={endpointId} />
          {decisions.length > 0 && (
            <section aria-labelledby="decisions">
              <h2 id="decisions">Decisions</h2>
              <Table
                label="Decisions, newest first"
                rows={mergedOf(decisions)}
                columns={columns}
                keyOf={({ from, outcome }) => `${from} ${outcome}`}
              />
              <Cut
                rows={decisions.length}
                most={decisionsListed}
                what="records of decisions are shown, and are in the chart"
              />
            </section>
          )}
        </>
      )}
    </Loaded>
  );
}

function OverTime({ decisions }: { readonly decisions: readonly ScalingDecision[] }) {
  const [at, setAt] = useState<number>();
  const { times, series, oldestFirst } = useMemo(() => chartOf(decisions), [decisions]);
  const seen = at === undefined ? undefined : oldestFirst[at];
  return (
    <section aria-labelledby="over-time">
      <h2 id="over-time">Over time</h2>
      <Suspense fallback={<Rows columns={1} rows={5} />}>
        <Chart label="Jobs that waited and ran, and workers, over time" times={times} series={series} onHover={setAt} />
      </Suspense>
      <p className="note under-chart" aria-live="off">
        {seen
          ? `${new Date(seen.from).toLocaleTimeString()}: ${seen.outcome}, because ${seen.reason}. ${inputsOf(seen)}`
          : "Point at the chart to see a decision with what it was made from."}
      </p>
    </section>
  );
}

const columns: readonly Column<ScalingDecision>[] = [
  { title: "When", of: ({ from }) => <Ago at={from} />, by: ({ from }) => from },
  { title: "Decision", of: ({ outcome }) => outcome, by: ({ outcome }) => outcome },
  { title: "Times", kind: "number", of: ({ times }) => times, by: ({ times }) => times },
  { title: "Reason", of: ({ reason }) => reason },
  { title: "Made from", kind: "why", of: inputsOf },
];

const isSame = (a: ScalingDecision | undefined, b: ScalingDecision | undefined): boolean =>
  a?.outcome === b?.outcome && a?.reason === b?.reason;

/** Newest first, as they come; a decision that was recorded again because what waits or runs has changed is one. */
function mergedOf(decisions: readonly ScalingDecision[]): ScalingDecision[] {
  const merged: ScalingDecision[] = [];
  for (const decision of decisions) {
    const later = merged.at(-1);
    if (later && isSame(later, decision))
      merged[merged.length - 1] = { ...decision, until: later.until, times: later.times + decision.times };
    else merged.push(decision);
  }
  return merged;
}

function inputsOf({ inputs }: ScalingDecision): string {
  const { waiting = 0, running = 0, slots = 1 } = inputs as { waiting?: number; running?: number; slots?: number };
  const workers = Object.entries(Object.groupBy(statesOf(inputs), (state) => state));
  const words = workers.map(([state, all]) => `${all?.length} ${state}`).join(", ") || "no workers";
  return `${waiting} waiting, ${running} running; ${words}; ${slots} at a time each`;
}

const statesOf = (inputs: ScalingDecision["inputs"]): string[] =>
  Array.isArray(inputs.workers) ? (inputs.workers as string[]) : [];

function chartOf(decisions: readonly ScalingDecision[]) {
  const oldestFirst = decisions.toReversed();
  // a decision holds from its first time to its last
  const points = oldestFirst.map((decision) => ({ decision, time: Date.parse(decision.from) }));
  const last = oldestFirst.at(-1);
  if (last) points.push({ decision: last, time: Math.max(Date.parse(last.until), Date.parse(last.from) + 1) });
  const of = (pick: (inputs: ScalingDecision["inputs"]) => number) =>
    points.map(({ decision }) => pick(decision.inputs));
  const series: Series[] = [
    {
      label: "waiting",
      color: "--waiting",
      isArea: true,
      isStep: true,
      values: of(({ waiting }) => Number(waiting ?? 0)),
    },
    {
      label: "running",
      color: "--running",
      isArea: true,
      isStep: true,
      values: of(({ running }) => Number(running ?? 0)),
    },
    { label: "workers", color: "--accent", isStep: true, values: of((inputs) => statesOf(inputs).length) },
    {
      label: "a decision",
      color: "--text",
      isMarked: true,
      values: points.map(({ decision }, n) =>
        isSame(decision, points[n - 1]?.decision) ? null : statesOf(decision.inputs).length,
      ),
    },
  ];
  return { times: points.map(({ time }) => time), series, oldestFirst: points.map(({ decision }) => decision) };
}
