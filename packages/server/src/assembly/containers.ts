import type { Config } from "../config.js";
import type { Emit } from "../events.js";
import { dockerProvider } from "../providers/docker/docker-provider.js";
import { engineAddress, openEngine } from "../providers/docker/engine.js";
import { noContainers } from "../providers/no-containers.js";

/**
 * Containers, run by the engine that this server's environment points to. If there is a problem with it, only
 * containers are affected.
 */
export function findContainers(config: Config, env: NodeJS.ProcessEnv, hostId: string, logsDir: string, emit: Emit) {
  if (!config.containers) {
    const off = "container images are turned off here (MILLRACE_CONTAINERS); use a directory as the image";
    return { engine: undefined, containers: noContainers(off, logsDir) };
  }
  try {
    const engine = openEngine(engineAddress(env), { network: config.dockerNetwork, publishOn: config.dockerPublish });
    return {
      engine,
      containers: dockerProvider(engine, hostId, logsDir, (message) => emit({ type: "server.warning", message })),
    };
  } catch (error) {
    return {
      engine: undefined,
      containers: noContainers(error instanceof Error ? error.message : String(error), logsDir),
    };
  }
}
