/** A time span for people: 40 ms, 2.1 s, 3 min 20 s, 2 h 5 min. */
export function span(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1_000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1_000);
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  return `${Math.floor(seconds / 3_600)} h ${Math.floor((seconds % 3_600) / 60)} min`;
}

/** How long ago a time was, for people; undefined if there is none. */
export function ago(time: string | undefined): string | undefined {
  if (time === undefined) return undefined;
  const ms = Math.max(0, Date.now() - Date.parse(time));
  const [size, unit] = sizes.find(([size]) => ms >= size) ?? [1_000, "s"];
  return `${Math.floor(ms / size)} ${unit} ago`;
}

const sizes = [
  [86_400_000, "d"],
  [3_600_000, "h"],
  [60_000, "min"],
] as const;
