/** Histories that broke a promise once, or that come where few others do: they run every time. */
export const seeds: readonly { readonly seed: number; readonly why: string }[] = [
  {
    seed: 17,
    why: "a webhook was sent a fourth time: its row had been read while its last attempt was being recorded",
  },
  { seed: 1002, why: "the same with several webhooks to slow receivers" },
  {
    seed: 26,
    why: "a lowPriority job alone in its queue, a server stopped for a minute, a job that kills three workers",
  },
  { seed: 42, why: "workers that die at their start, each with three jobs" },
  { seed: 5096, why: "clients wait for a job whose ttl is cut short" },
  { seed: 5145, why: "a worker hangs in a cancelled job that a false ping was taken to have stopped" },
  { seed: 1121, why: "a job's ttl is cut short while its result is on the wire" },
];
