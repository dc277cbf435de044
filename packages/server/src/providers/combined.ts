import type { WorkerHandle } from "../domain/workers/worker.js";
import type { Provider, WorkerSpec } from "../provider.js";

/** Several providers, by the names that their handles carry. Workers without a handle belong to the first. */
export type Providers = Readonly<Record<string, Provider<never>>>;

/**
 * Combines several providers into one: `nameOf` names the provider that starts a worker, and later the worker's handle
 * names it. A provider whose handles are not known before the start must be the first.
 */
export function combined(providers: Providers, nameOf: (spec: WorkerSpec) => string): Provider {
  const all = Object.values(providers);
  /** By id, the provider of each worker that does not belong to the first provider. */
  const homes = new Map<string, Provider<never>>();
  const known = (workerId: string, handle?: WorkerHandle): Provider<never> =>
    providers[handle?.provider ?? ""] ?? homes.get(workerId) ?? (all[0] as Provider<never>);
  const homeOf = (workerId: string, handle?: WorkerHandle): Provider<never> => {
    // it may still run, unseen
    if (handle && !Object.hasOwn(providers, handle.provider))
      throw new Error(`this server has no provider '${handle.provider}', which runs worker ${workerId}`);
    const home = known(workerId, handle);
    if (home !== all[0]) homes.set(workerId, home);
    return home;
  };
  const starter = (spec: WorkerSpec) => providers[nameOf(spec)] as unknown as Provider;
  for (const each of all.slice(1)) each.onEnd((workerId) => homes.set(workerId, each));

  return {
    handleOf: (spec) => starter(spec).handleOf(spec),
    async start(spec, starting) {
      const home = starter(spec);
      if (home !== all[0]) homes.set(spec.workerId, home);
      return home.start(spec, starting);
    },
    look: async (workerId, handle) => homeOf(workerId, handle).look(workerId, handle),
    pause: (workerId) => homeOf(workerId).pause(workerId),
    resume: (workerId) => homeOf(workerId).resume(workerId),
    stop: (workerId) => homeOf(workerId).stop(workerId),
    kill: async (workerId, handle) => homeOf(workerId, handle).kill(workerId, handle),
    logTail: (workerId) => homeOf(workerId).logTail(workerId),
    // also for forgotten workers, without remembering them again
    logs: (workerId, handle, query) => known(workerId, handle).logs(workerId, handle, query),
    hide: (workerId, secret) => homeOf(workerId).hide(workerId, secret),
    async forget(workerId) {
      await homeOf(workerId).forget(workerId);
      homes.delete(workerId);
    },
    onEnd(listener) {
      const offs = all.map((each) => each.onEnd(listener));
      return () => {
        for (const off of offs) off();
      };
    },
    leave: async (awayMs) => void (await Promise.all(all.map((each) => each.leave(awayMs)))),
  };
}
