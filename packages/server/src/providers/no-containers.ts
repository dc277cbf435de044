import type { ContainerLaunch, Provider } from "../provider.js";

/** Where there is no container engine to speak to; `why` is a sentence. */
export const noContainers = (why: string): Provider<ContainerLaunch> => ({
  handleOf: () => undefined,
  async start() {
    throw new Error(why);
  },
  async look(_workerId, handle) {
    // it may run still, where nobody can see it
    if (handle !== undefined) throw new Error(why);
    return { state: "unknown" };
  },
  stop: async () => {},
  kill: async () => {},
  logTail: async () => "",
  forget: async () => {},
  onEnd: () => {},
  leave: async () => {},
});
