import { PlainSignal, type Signal } from "../clock.js";

/**
 * A signal that aborts with the first of `signals`, and detaches from them when `release` is called. (`AbortSignal.any`
 * never detaches from a source that lives as long as the server: half a million waits cost 600 MB.)
 */
export function either(...signals: readonly Signal[]): { signal: PlainSignal; release: () => void } {
  const signal = new PlainSignal();
  const abort = () => signal.abort();
  const release = () => {
    for (const each of signals) each.removeEventListener("abort", abort);
  };
  for (const each of signals) {
    if (each.aborted) abort();
    else each.addEventListener("abort", abort);
  }
  return { signal, release };
}
