import type { Bell, Topic } from "../bell.js";
import type { Clock } from "../clock.js";
import { either } from "./either.js";

/** A constant reason: an abort without one makes an exception with its stack. */
const woken = "woken";

export interface Wait {
  readonly topic: Topic;
  readonly untilAt: number;
  /** Aborted when the caller is gone, or the server stops: then the present state is the answer. */
  readonly signals: readonly AbortSignal[];
}

/**
 * Waits for one thing: subscribes, reads, then sleeps until the topic rings, the time is over or the caller is gone.
 * `read` says when to look again though nothing rings (`lookAt`), and `done` when what it found is the answer; the last thing read is returned in any case.
 */
export async function waitFor<T>(
  { bell, clock }: { bell: Bell; clock: Clock },
  wait: Wait,
  read: () => Promise<{ value: T; done: boolean; lookAt?: number }>,
): Promise<T> {
  let rung = false;
  let wake: AbortController | undefined;
  const off = bell.on(wait.topic, () => {
    rung = true;
    wake?.abort(woken);
  });
  const gone = () => wake?.abort(woken);
  const { signal, release } = either(...wait.signals);
  signal.addEventListener("abort", gone, { once: true });
  try {
    for (;;) {
      rung = false;
      wake = new AbortController();
      const { value, done, lookAt } = await read();
      const left = wait.untilAt - clock.now();
      if (done || left <= 0 || signal.aborted) return value;
      if (!rung) await clock.sleep(Math.min(left, (lookAt ?? Number.POSITIVE_INFINITY) - clock.now()), wake.signal);
    }
  } finally {
    off();
    release();
  }
}
