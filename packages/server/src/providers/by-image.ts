import { isContainer, type WorkerHandle } from "../domain/worker.js";
import type { ContainerLaunch, Launch, ProcessLaunch, Provider, Sighting } from "../provider.js";

/** Processes and containers as one provider: what a worker is started from decides, and its handle tells afterwards. */
export function byImage(processes: Provider<ProcessLaunch>, containers: Provider<ContainerLaunch>): Provider {
  const homes = new Map<string, Provider<never>>();

  /** Whose a worker is. One without a handle (we died as it was started) may be either's. */
  async function lookFor(workerId: string, handle?: WorkerHandle): Promise<Sighting> {
    const home = isContainer(handle) ? containers : handle ? processes : homes.get(workerId);
    if (home) {
      homes.set(workerId, home);
      return home.look(workerId, handle);
    }
    for (const each of [processes, containers]) {
      const seen = await each.look(workerId, undefined);
      if (seen.state === "unknown") continue;
      homes.set(workerId, each);
      return seen;
    }
    return { state: "unknown" };
  }
  const homeOf = async (workerId: string): Promise<Provider<never>> => {
    if (!homes.has(workerId)) await lookFor(workerId, undefined);
    return homes.get(workerId) ?? processes;
  };

  return {
    async start(launch: Launch, note) {
      homes.set(launch.workerId, "image" in launch ? containers : processes);
      return "image" in launch ? containers.start(launch, note) : processes.start(launch);
    },
    look: lookFor,
    stop: async (workerId) => (await homeOf(workerId)).stop(workerId),
    async kill(workerId, handle) {
      const home = isContainer(handle) ? containers : handle ? processes : await homeOf(workerId);
      await home.kill(workerId, handle);
    },
    logTail: async (workerId) => (await homeOf(workerId)).logTail(workerId),
    async forget(workerId) {
      const home = await homeOf(workerId);
      homes.delete(workerId);
      await home.forget(workerId);
    },
    onEnd(listener) {
      for (const each of [processes, containers]) each.onEnd(listener);
    },
    leave: async (awayMs) => void (await Promise.all([processes.leave(awayMs), containers.leave(awayMs)])),
  };
}
