import type { Bell, Topic } from "../bell.js";

/** A bell within this process. */
export function localBell(): Bell {
  const listeners = new Map<Topic, Set<() => void>>();
  return {
    ring(topic) {
      const heard = listeners.get(topic);
      if (heard) for (const listener of [...heard]) listener();
    },
    ringElsewhere() {},
    on(topic, listener) {
      const heard = listeners.get(topic) ?? new Set();
      listeners.set(topic, heard.add(listener));
      return () => {
        heard.delete(listener);
        if (heard.size === 0 && listeners.get(topic) === heard) listeners.delete(topic);
      };
    },
    ringAll() {
      for (const heard of [...listeners.values()]) for (const listener of [...heard]) listener();
    },
    close: async () => listeners.clear(),
  };
}
