import type { Config } from "../config.js";
import type { WorkersDoor } from "../edges/worker-protocol/door.js";
import { bracketed, reachable } from "./addresses.js";
import type { Providers } from "./providers.js";

/**
 * The URL at which workers call this server. Containers use the engine's bridge, where a listener opens when the first
 * container needs it.
 */
export const workerUrl =
  (config: Config, port: number, { address }: Pick<Providers, "address">, sideDoor: WorkersDoor) =>
  async (hasOwnNetwork: boolean): Promise<string> => {
    if (config.workerUrl !== undefined) return config.workerUrl;
    if (!hasOwnNetwork || !address) return `http://${bracketed(reachable(config.host))}:${port}`;
    return `http://${bracketed(await sideDoor.open(await address()))}:${port}`;
  };
