import { useId } from "react";

/** From the beginning of one day to the end of another, where this browser is; `until` is exclusive. */
export function timesOf(since: string, until: string): { since?: string; until?: string } {
  const startOf = (day: string, plusDays: number) => {
    const [year = 0, month = 0, date = 0] = day.split("-").map(Number);
    const at = new Date(year, month - 1, date + plusDays);
    return Number.isNaN(at.getTime()) ? undefined : at.toISOString();
  };
  const [from, to] = [since && startOf(since, 0), until && startOf(until, 1)];
  return { ...(from && { since: from }), ...(to && { until: to }) };
}

/** A day to choose, as YYYY-MM-DD. */
export const Day = ({
  label,
  value,
  change,
}: {
  readonly label: string;
  readonly value: string;
  readonly change: (day: string) => void;
}) => {
  const field = useId();
  return (
    <span>
      <label htmlFor={field}>{label}</label>{" "}
      <input id={field} type="date" value={value} onChange={({ target }) => change(target.value)} />
    </span>
  );
};
