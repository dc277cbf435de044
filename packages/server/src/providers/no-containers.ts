import type { ImageSpec, Provider } from "../provider.js";
import { readLogFiles } from "./log-files/reading.js";

/**
 * The provider where no container engine can be reached; `why` is a sentence. Logs of earlier containers can still be
 * read.
 */
export const noContainers = (why: string, logsDir: string): Provider<ImageSpec> => ({
  handleOf: () => undefined,
  async start() {
    throw new Error(why);
  },
  async look(_workerId, handle) {
    // it may still run, unseen
    if (handle !== undefined) throw new Error(why);
    return { state: "unknown", why: "it was never started", isAbsent: false };
  },
  pause: async () => {},
  resume: async () => {},
  stop: async () => {},
  kill: async () => {},
  logTail: async () => "",
  logs: (workerId, _handle, query) => readLogFiles(logsDir, workerId, query, () => true),
  hide: async () => {},
  forget: async () => {},
  onEnd: () => () => {},
  leave: async () => {},
});
