import type Docker from "dockerode";
import { isAway } from "./failures.js";

/** Why containers could not work here. */
export const noWayBack =
  "containers have no way back to this server: set MILLRACE_WORKER_URL to an address that they reach";

/**
 * The address of this machine that containers of the engine's default network see. Rejects with one sentence where it is
 * not to be found.
 */
export async function gatewayOf(docker: Docker, host: string): Promise<string> {
  const bridge = await docker
    .getNetwork("bridge")
    .inspect()
    .catch((error) => {
      if (isAway(error))
        throw new Error(`no container engine answers at ${host}: install Docker, start it, or set DOCKER_HOST`);
      throw error;
    });
  const [{ Gateway = "" } = {}] = (bridge.IPAM?.Config ?? []) as { Gateway?: string }[];
  if (Gateway === "") throw new Error(noWayBack);
  return Gateway;
}
