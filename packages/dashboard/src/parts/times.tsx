import { ago } from "@millrace/api/words";
import { useSyncExternalStore } from "react";

export { span } from "@millrace/api/words";

const tickMs = 5_000;
const watchers = new Set<() => void>();
let ticks = 0;
setInterval(() => {
  ticks++;
  for (const watcher of watchers) watcher();
}, tickMs);

function watch(watcher: () => void): () => void {
  watchers.add(watcher);
  return () => watchers.delete(watcher);
}

/** When something was, in words that stay true as time passes; the exact time is its title. */
export function Ago({ at }: { readonly at: string | undefined }) {
  useSyncExternalStore(watch, () => ticks);
  if (at === undefined) return "–";
  return (
    <time dateTime={at} title={new Date(at).toLocaleString()}>
      {ago(at)}
    </time>
  );
}
