import { setImmediate as turn } from "node:timers/promises";
import { invalid } from "../errors.js";
import { limits } from "../limits.js";

/** How many entries of lists one query has been given. */
export interface Counted {
  entries: number;
}

/** A list whose entries come a few in each turn of the event loop; all lists of one query together are bounded. */
export function listed<T, View>(counted: Counted, items: readonly T[], view: (item: T) => View): Promise<View>[] {
  counted.entries += items.length;
  if (counted.entries > limits.graphqlEntriesMax)
    throw invalid(`The query lists more than ${limits.graphqlEntriesMax} entries: ask for one list at a time.`);
  let ready: Promise<void> = Promise.resolve();
  return items.map((item, n) => {
    if (n > 0 && n % limits.listSliceItems === 0) ready = ready.then(() => turn());
    return ready.then(() => view(item));
  });
}
