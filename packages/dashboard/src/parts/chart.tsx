import { useEffect, useRef } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";

/** One line of a chart; its colour is the name of a CSS variable. */
export interface Series {
  readonly label: string;
  readonly color: string;
  readonly values: readonly (number | null)[];
  readonly isArea?: boolean;
  readonly isStep?: boolean;
  /** Shows each value as a point, without a line. */
  readonly isMarked?: boolean;
}

const height = 220;

const dayS = 86_400;

/** What the time axis says: the time at each tick, under the first one and where a day begins also the date. */
function timesOf(_: uPlot, ticks: readonly number[], __: number, ___: number, stepS: number): string[] {
  const dateOf = (at: number) => new Date(at * 1_000).toLocaleDateString(undefined, { month: "short", day: "numeric" });
  if (stepS >= dayS) return ticks.map(dateOf);
  const seconds = stepS < 60 ? ({ second: "2-digit" } as const) : {};
  return ticks.map((at, n) => {
    const time = new Date(at * 1_000).toLocaleTimeString(undefined, { hour: "numeric", minute: "2-digit", ...seconds });
    const before = ticks[n - 1];
    return before !== undefined && dateOf(before) === dateOf(at) ? time : `${time}\n${dateOf(at)}`;
  });
}

/** The room that the longest word of an axis needs. */
const roomOf = (plot: uPlot, words: readonly string[] | null): number => {
  const widths = (words ?? []).map((word) => plot.ctx.measureText(word).width / uPlot.pxRatio);
  return Math.max(64, Math.ceil(Math.max(0, ...widths)) + 20);
};

/** Values over time. `times` are in milliseconds; `onHover` gets the index of the point under the mouse. */
export function Chart({
  label,
  times,
  series,
  format = (value) => String(value),
  onHover,
}: {
  readonly label: string;
  readonly times: readonly number[];
  readonly series: readonly Series[];
  readonly format?: (value: number) => string;
  readonly onHover?: (index: number | undefined) => void;
}) {
  const room = useRef<HTMLDivElement>(null);
  const hover = useRef(onHover);
  hover.current = onHover;
  useEffect(() => {
    const place = room.current;
    if (!place) return;
    const colorOf = (name: string) => getComputedStyle(place).getPropertyValue(name);
    const soft = { stroke: () => colorOf("--soft"), grid: { stroke: () => colorOf("--line"), width: 1 } };
    const plot = new uPlot(
      {
        width: place.clientWidth,
        height,
        legend: { show: false },
        cursor: { drag: { x: false, y: false } },
        axes: [
          { ...soft, space: 88, values: timesOf },
          { ...soft, size: roomOf, values: (_, ticks) => ticks.map(format) },
        ],
        scales: { y: { range: (_, __, max) => [0, Math.max(1, max ?? 1) * 1.1] } },
        series: [
          {},
          ...series.map(({ label: name, color, isArea, isStep, isMarked = false }) => ({
            label: name,
            stroke: () => colorOf(color),
            width: isMarked ? 0 : 1.5,
            points: isMarked ? { show: true, size: 6, width: 0, fill: () => colorOf(color) } : { show: false },
            ...(isArea ? { fill: () => `color-mix(in srgb, ${colorOf(color)} 22%, transparent)` } : {}),
            ...(isStep && uPlot.paths.stepped ? { paths: uPlot.paths.stepped({ align: 1 }) } : {}),
          })),
        ],
        hooks: { setCursor: [({ cursor }) => hover.current?.(cursor.idx ?? undefined)] },
      },
      [times.map((time) => time / 1_000), ...series.map(({ values }) => [...values])],
      place,
    );
    const resize = new ResizeObserver(() => plot.setSize({ width: place.clientWidth, height }));
    resize.observe(place);
    const scheme = matchMedia("(prefers-color-scheme: dark)");
    const redraw = () => plot.redraw();
    const chosen = new MutationObserver(redraw); // by the button of the rail
    chosen.observe(document.documentElement, { attributes: true, attributeFilter: ["style"] });
    scheme.addEventListener("change", redraw);
    return () => {
      resize.disconnect();
      chosen.disconnect();
      scheme.removeEventListener("change", redraw);
      plot.destroy();
    };
  }, [times, series, format]);
  return (
    <figure className="chart">
      <figcaption>
        {series.map(({ label: name, color, isMarked }) => (
          <span key={name} className="key-of">
            <svg width="10" height="10" aria-hidden="true">
              <rect width="10" height="10" rx={isMarked ? 5 : 2} style={{ fill: `var(${color})` }} />
            </svg>
            {name}
          </span>
        ))}
      </figcaption>
      <div ref={room} role="img" aria-label={label} />
    </figure>
  );
}
