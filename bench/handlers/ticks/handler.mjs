// Yields a chunk every few milliseconds with its departure time, by the clock that all processes of a machine share.
import { setTimeout as sleep } from "node:timers/promises";

export default async function* ticks({ count, everyMs }) {
  for (let n = 0; n < count; n++) {
    await sleep(everyMs);
    yield { at: String(process.hrtime.bigint()) };
  }
}
