import type { Config } from "../config.js";
import type { WorkersDoor } from "../edges/worker-protocol/door.js";
import type { Engine } from "../providers/docker/engine.js";
import { gatewayOf } from "../providers/docker/gateway.js";
import { bracketed, reachable } from "./addresses.js";

/**
 * The URL at which workers call this server. Containers use the engine's bridge, where a listener opens when the first
 * container needs it.
 */
export const workerUrl =
  (config: Config, port: number, engine: Engine | undefined, sideDoor: WorkersDoor) =>
  async (hasOwnNetwork: boolean): Promise<string> => {
    if (config.workerUrl !== undefined) return config.workerUrl;
    if (!hasOwnNetwork || !engine) return `http://${bracketed(reachable(config.host))}:${port}`;
    return `http://${bracketed(await sideDoor.open(await gatewayOf(engine)))}:${port}`;
  };
