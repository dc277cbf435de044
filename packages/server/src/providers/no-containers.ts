import type { ContainerLaunch, Provider } from "../provider.js";
import { readLogFiles } from "./log-files/reading.js";

/** Where there is no container engine to speak to; `why` is a sentence. What earlier containers said is still kept. */
export const noContainers = (why: string, logsDir: string): Provider<ContainerLaunch> => ({
  handleOf: () => undefined,
  async start() {
    throw new Error(why);
  },
  async look(_workerId, handle) {
    // it may run still, where nobody can see it
    if (handle !== undefined) throw new Error(why);
    return { state: "unknown" };
  },
  pause: async () => {},
  resume: async () => {},
  stop: async () => {},
  kill: async () => {},
  logTail: async () => "",
  logs: (workerId, _handle, query) => readLogFiles(logsDir, workerId, query, () => true),
  hide: async () => {},
  forget: async () => {},
  onEnd: () => {},
  leave: async () => {},
});
