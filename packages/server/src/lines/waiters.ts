import type { Bell, Topic } from "../bell.js";
import { type Clock, PlainSignal, type Signal } from "../clock.js";

export interface Wait {
  readonly topic: Topic;
  readonly untilAt: number;
  /** Aborted when the caller goes away or the server stops: the wait then ends with the current state. */
  readonly signals: readonly Signal[];
}

/**
 * Waits for one thing: subscribes, reads, then sleeps until the topic rings, time is up or the caller goes away. `read`
 * says whether its value is the answer (`done`), and when to look again even without a ring (`lookAt`). Returns the
 * last value read in any case.
 */
export async function waitFor<T>(
  { bell, clock }: { bell: Bell; clock: Clock },
  wait: Wait,
  read: () => Promise<{ value: T; done: boolean; lookAt?: number }>,
): Promise<T> {
  let rung = false;
  let wake: PlainSignal | undefined;
  const ring = () => {
    rung = true;
    wake?.abort();
  };
  const off = bell.on(wait.topic, ring);
  for (const signal of wait.signals) signal.addEventListener("abort", ring);
  try {
    for (;;) {
      rung = false;
      wake = new PlainSignal();
      const { value, done, lookAt } = await read();
      const left = wait.untilAt - clock.now();
      if (done || left <= 0 || wait.signals.some((signal) => signal.aborted)) return value;
      if (!rung) await clock.sleep(Math.min(left, (lookAt ?? Number.POSITIVE_INFINITY) - clock.now()), wake);
    }
  } finally {
    off();
    for (const signal of wait.signals) signal.removeEventListener("abort", ring);
  }
}
