import type { Bell, Topic } from "../bell.js";
import type { Clock } from "../clock.js";
import type { Emit } from "../events.js";
import { limits } from "../limits/index.js";

/** Work that no caller asks for. `tick` does what is due and returns when to look next; a ring makes it look sooner. */
export interface Loop {
  readonly name: string;
  readonly topics: readonly Topic[];
  /** The least time between two ticks, in milliseconds. */
  readonly gapMs: number;
  /** Called once; for loops that listen to more than fixed topics. */
  readonly listen?: (wake: () => void) => () => void;
  tick(now: number, signal: AbortSignal): Promise<number | undefined>;
}

/** Without a reason, each abort would create an exception with its stack: 14 % of the time on the hot path. */
const woken = "woken";

/** Runs a loop until `signal` aborts: ticks never overlap and never throw out; with nothing to do, nothing runs. */
export async function runLoop(
  loop: Loop,
  { bell, clock, emit }: { bell: Bell; clock: Clock; emit: Emit },
  signal: AbortSignal,
): Promise<void> {
  let rung = true;
  let nap = new AbortController();
  const wake = () => {
    rung = true;
    nap.abort(woken);
  };
  const offs = loop.topics.map((topic) => bell.on(topic, wake));
  if (loop.listen) offs.push(loop.listen(wake));
  signal.addEventListener("abort", wake, { once: true });
  let lookAt: number | undefined;
  try {
    while (!signal.aborted) {
      rung = false;
      try {
        lookAt = await loop.tick(clock.now(), signal);
      } catch (error) {
        emit({ type: "server.warning", message: `the loop '${loop.name}' failed and will try again`, error });
        lookAt = clock.now() + limits.netMs;
      }
      await clock.sleep(loop.gapMs, signal);
      if (rung || signal.aborted) continue;
      nap = new AbortController();
      await clock.sleep(lookAt === undefined ? Number.POSITIVE_INFINITY : lookAt - clock.now(), nap.signal);
    }
  } finally {
    for (const off of offs) off();
    signal.removeEventListener("abort", wake);
  }
}
