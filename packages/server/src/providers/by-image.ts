import { isContainer, type WorkerHandle } from "../domain/workers/worker.js";
import type { ContainerLaunch, Launch, ProcessLaunch, Provider } from "../provider.js";

/**
 * Runs processes and containers as one provider: a launch says which kind it is, and later the worker's handle does. A
 * container's handle is known before its start, so a worker without a handle is a process.
 */
export function byImage(processes: Provider<ProcessLaunch>, containers: Provider<ContainerLaunch>): Provider {
  /** Workers that run, or ran, in containers. */
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
      // also for forgotten workers, without remembering them again
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
