import { limits } from "../../limits/index.js";

interface Waiting<Asked, Found> {
  readonly asked: Asked;
  readonly resolve: (found: Found) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Combines everything requested in one turn of the event loop, or while two reads are in flight, into one read of at most
 * `most` keys.
 */
export function gathered<Asked, Found>(
  fetch: (asked: readonly Asked[]) => Promise<Found[]>,
  most: number = limits.groupCallsMax,
) {
  const waiting: Waiting<Asked, Found>[] = [];
  let onTheWay = 0;
  let scheduled = false;

  async function run(): Promise<void> {
    const batch = waiting.splice(0, most);
    onTheWay++;
    try {
      const found = await fetch(batch.map(({ asked }) => asked));
      batch.forEach(({ resolve }, n) => void resolve(found[n] as Found));
    } catch (error) {
      for (const { reject } of batch) reject(error);
    } finally {
      onTheWay--;
      schedule();
    }
  }

  function schedule(): void {
    if (scheduled || waiting.length === 0 || onTheWay >= limits.gatheredReads) return;
    scheduled = true;
    setImmediate(() => {
      scheduled = false;
      void run();
    });
  }

  return (asked: Asked): Promise<Found> =>
    new Promise((resolve, reject) => {
      waiting.push({ asked, resolve, reject });
      schedule();
    });
}
