import type { Worker } from "@millrace/api";
import { span } from "../times.js";

interface Phase {
  readonly name: string;
  readonly ms: number;
}

/** The steps of a worker's start, in their order. */
export function phasesOf({ coldStart }: Pick<Worker, "coldStart">): Phase[] {
  const steps = [
    ["waiting for a place", coldStart.placeMs],
    ["image", coldStart.imageMs],
    ["container", coldStart.createMs],
    ["process", coldStart.startMs],
    ["until it was ready", coldStart.readyMs],
  ] as const;
  return steps.flatMap(([name, ms]) => (ms === undefined ? [] : [{ name, ms }]));
}

/** How a worker started: each step to scale, with its time. */
export function Phases({ worker }: { readonly worker: Pick<Worker, "coldStart"> }) {
  const phases = phasesOf(worker);
  if (phases.length === 0) return <p className="note">It has not started yet.</p>;
  const all = Math.max(1, ...[phases.reduce((sum, { ms }) => sum + ms, 0)]);
  let at = 0;
  return (
    <figure className="phases">
      <svg viewBox={`0 0 100 ${phases.length * 6}`} preserveAspectRatio="none" aria-hidden="true">
        {phases.map(({ name, ms }, n) => {
          const x = (100 * at) / all;
          at += ms;
          return (
            <rect key={name} x={x} y={n * 6 + 1} width={Math.max(0.4, (100 * ms) / all)} height="4" className="phase" />
          );
        })}
      </svg>
      <ol>
        {phases.map(({ name, ms }) => (
          <li key={name}>
            {name} <b>{span(ms)}</b>
          </li>
        ))}
      </ol>
    </figure>
  );
}
