import { isContainer, type WorkerHandle } from "../domain/workers/worker.js";
import type { ContainerLaunch, Launch, ProcessLaunch, Provider } from "../provider.js";

/**
 * Processes and containers as one provider: what a worker is started from decides, and its handle tells afterwards. A
 * container's is known before it is started, so a worker without one is a process.
 */
export function byImage(processes: Provider<ProcessLaunch>, containers: Provider<ContainerLaunch>): Provider {
  /** Those that run in containers, or did. */
  const contained = new Set<string>();
  const homeOf = (workerId: string, handle?: WorkerHandle): Provider<never> => {
    if (isContainer(handle)) contained.add(workerId);
    return contained.has(workerId) ? containers : processes;
  };
  containers.onEnd((workerId) => contained.add(workerId));

  return {
    handleOf: (launch: Launch) => ("image" in launch ? containers.handleOf(launch) : processes.handleOf(launch)),
    async start(launch: Launch, starting) {
      if (!("image" in launch)) return processes.start(launch, starting);
      contained.add(launch.workerId);
      return containers.start(launch, starting);
    },
    look: (workerId, handle) => homeOf(workerId, handle).look(workerId, handle),
    pause: (workerId) => homeOf(workerId).pause(workerId),
    resume: (workerId) => homeOf(workerId).resume(workerId),
    stop: (workerId) => homeOf(workerId).stop(workerId),
    kill: (workerId, handle) => homeOf(workerId, handle).kill(workerId, handle),
    logTail: (workerId) => homeOf(workerId).logTail(workerId),
    logs(workerId, handle, query) {
      // also of one that was forgotten, and is not to be remembered for that
      const home = isContainer(handle) || contained.has(workerId) ? containers : processes;
      return home.logs(workerId, handle, query);
    },
    hide: (workerId, secret) => homeOf(workerId).hide(workerId, secret),
    async forget(workerId) {
      await homeOf(workerId).forget(workerId);
      contained.delete(workerId);
    },
    onEnd(listener) {
      for (const each of [processes, containers]) each.onEnd(listener);
    },
    leave: async (awayMs) => void (await Promise.all([processes.leave(awayMs), containers.leave(awayMs)])),
  };
}
