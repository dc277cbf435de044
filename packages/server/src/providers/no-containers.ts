import type { ContainerLaunch, Provider } from "../provider.js";

/** Where container images are turned off. */
export const noContainers: Provider<ContainerLaunch> = {
  async start() {
    throw new Error("container images are turned off here (MILLRACE_CONTAINERS); use a directory as the image");
  },
  look: async () => ({ state: "unknown" }),
  stop: async () => {},
  kill: async () => {},
  logTail: async () => "",
  forget: async () => {},
  onEnd: () => {},
  leave: async () => {},
};
