import { setTimeout as later } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

const server = /packages\/server\/src\/(?!testing\/|.*\.test\.ts)(.+?\.ts)/;

/**
 * Watches every Map and Set that the server's code makes from now on, private ones included, so that a test can tell
 * which of them grow.
 */
export function watchCollections() {
  const plain = { Map: globalThis.Map, Set: globalThis.Set };
  let made: { readonly place: string; readonly ref: WeakRef<{ readonly size: number }> }[] = [];
  const watch = (collection: { readonly size: number }, caller: new () => unknown) => {
    const at: { stack?: string } = {};
    const { stackTraceLimit } = Error;
    Error.stackTraceLimit = 1;
    Error.captureStackTrace(at, caller);
    Error.stackTraceLimit = stackTraceLimit;
    const line = at.stack?.split("\n")[1]?.trim() ?? "";
    const [, file] = server.exec(line) ?? [];
    if (file) made.push({ place: `${file}:${/:(\d+):\d+\)?$/.exec(line)?.[1]}`, ref: new WeakRef(collection) });
  };
  globalThis.Map = class WatchedMap<K, V> extends plain.Map<K, V> {
    constructor(entries?: Iterable<readonly [K, V]> | null) {
      super(entries);
      watch(this, WatchedMap);
    }
  } as MapConstructor;
  globalThis.Set = class WatchedSet<T> extends plain.Set<T> {
    constructor(values?: Iterable<T> | null) {
      super(values);
      watch(this, WatchedSet);
    }
  } as SetConstructor;
  setFlagsFromString("--expose-gc");
  const collect: () => void = runInNewContext("gc");

  return {
    /** The entries of those still in use, and 1 for each of these, by the line that made them. */
    async sizes(): Promise<Record<string, number>> {
      await later(0); // what was looked at in this turn of the event loop stays in use until it ends
      collect();
      const sizes = new plain.Map<string, number>();
      made = made.filter(({ place, ref }) => {
        const collection = ref.deref();
        if (collection) sizes.set(place, (sizes.get(place) ?? 0) + collection.size + 1);
        return collection !== undefined;
      });
      return Object.fromEntries(sizes);
    },
    end: () => void Object.assign(globalThis, plain),
  };
}
