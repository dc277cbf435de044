import type { Endpoint, ScalingReplay } from "@millrace/api";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { useId } from "react";
import { Scroll } from "../../parts/scroll.js";
import { span } from "../../parts/times.js";
import { Trouble } from "../../parts/trouble.js";
import { useRested } from "../../parts/use-rested.js";
import { endpointQuery, pageQuery } from "../../queries.js";
import { replayed } from "../../replayed.js";

const route = getRouteApi("/frame/endpoints/$endpointId/scaling");

type Setting = (typeof replayed)[number];
type Settings = Readonly<Partial<Record<Setting, number>>>;

/** Settings as a query, in the same order whichever slider was moved first. */
const queryOf = (settings: Settings): string =>
  String(
    new URLSearchParams(
      replayed.flatMap((name) => (settings[name] === undefined ? [] : [[name, String(settings[name])]])),
    ),
  );
const settingsOf = (query: string): Settings =>
  Object.fromEntries([...new URLSearchParams(query)].map(([name, value]) => [name, Number(value)]));

/** Other settings, replayed over the jobs that are still kept: what they would have changed. */
export function WhatIf({ endpointId }: { readonly endpointId: string }) {
  const endpoint = useQuery(endpointQuery(endpointId));
  if (endpoint.data?.type !== "QB") return null;
  return <Sliders endpoint={endpoint.data} />;
}

function Sliders({ endpoint }: { readonly endpoint: Endpoint }) {
  const navigate = route.useNavigate();
  // a what-if costs the server up to a second: it is asked for when the slider rests
  const asked = queryOf(route.useSearch());
  const [moved, move] = useRested(asked, (query) => {
    void navigate({ search: ({ sort }) => ({ ...(sort && { sort }), ...settingsOf(query) }), replace: true });
  });
  const changed = settingsOf(moved);
  const replay = useQuery({
    ...pageQuery<ScalingReplay>(`/v1/endpoints/${endpoint.id}/scaling/replay?${asked}`),
    placeholderData: keepPreviousData,
  });
  const slider = (name: Setting, max: number, min = 0) => {
    const { [name]: value = endpoint[name], ...others } = changed;
    return (
      <Slider
        name={name}
        min={min}
        max={Math.max(max, endpoint[name], value)}
        value={value}
        change={(next) => move(queryOf(next === endpoint[name] ? others : { ...others, [name]: next }))}
      />
    );
  };
  const delay = endpoint.scalerType === "QUEUE_DELAY" ? "seconds" : "requests for each worker";
  return (
    <section aria-labelledby="what-if">
      <h2 id="what-if">What if</h2>
      <p className="note">
        What the scaler would have done with other settings, if the jobs that are still kept came again at the same
        times. scalerValue is in {delay}, idleTimeout in seconds.
      </p>
      <div className="sliders">
        {slider("workersMin", 10)}
        {slider("workersMax", 20)}
        {slider("scalerValue", 60, 1)}
        {slider("idleTimeout", 300, 1)}
      </div>
      <Trouble error={replay.error} />
      {replay.data && <Outcome {...replay.data} />}
    </section>
  );
}

function Slider({
  name,
  min,
  max,
  value,
  change,
}: {
  readonly name: string;
  readonly min: number;
  readonly max: number;
  readonly value: number;
  readonly change: (value: number) => void;
}) {
  const id = useId();
  return (
    <div className="field">
      <label htmlFor={id}>
        {name} <b className="number">{value}</b>
      </label>
      <input
        id={id}
        type="range"
        min={min}
        max={max}
        value={value}
        onChange={({ target }) => change(Number(target.value))}
      />
    </div>
  );
}

function Outcome({ jobs, present, changed }: ScalingReplay) {
  if (jobs === 0) return <p className="note">No job is kept that could be replayed: send some, and look again.</p>;
  const unrun = changed.neverRan;
  const rows = [
    ["wait (p95)", present.waitP95Ms, changed.waitP95Ms],
    ["worker time", present.workerMs, changed.workerMs],
  ] as const;
  return (
    <>
      <p className="note">
        {jobs} {jobs === 1 ? "job" : "jobs"}. Workers started: {present.starts} with the present settings,{" "}
        {changed.starts} with these.
        {unrun > 0 && ` ${unrun} jobs would never run.`}
      </p>
      <Scroll label="What other settings would have changed">
        <table className="compare">
          <thead>
            <tr>
              <td />
              <th scope="col" className="number">
                Present settings
              </th>
              <th scope="col" className="number">
                These
              </th>
              <th scope="col" className="number">
                Difference
              </th>
            </tr>
          </thead>
          <tbody>
            {rows.map(([title, before, after]) => (
              <tr key={title}>
                <th scope="row">{title}</th>
                <td className="number">{span(before)}</td>
                <td className="number">{span(after)}</td>
                <td className="number">{differenceOf(before, after)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </Scroll>
    </>
  );
}

function differenceOf(before: number, after: number): string {
  if (before === after) return "none";
  return `${after > before ? "+" : "−"}${span(Math.abs(after - before))}`;
}
