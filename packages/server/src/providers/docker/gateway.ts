import type { Engine } from "./engine.js";
import { answered, away, isAway, statusOf } from "./failures.js";

/** The address of the engine's machine within the containers' network. Rejects with one sentence if there is none. */
export async function gatewayOf({ docker, host, network: name }: Engine): Promise<string> {
  const bridge = await answered(docker.getNetwork(name).inspect(), host).catch((error) => {
    if (statusOf(error) === 404)
      throw new Error(`the engine has no network '${name}' (MILLRACE_DOCKER_NETWORK): docker network create makes one`);
    throw isAway(error) ? away(error, host) : error;
  });
  const [{ Gateway, Subnet = "" } = {}] = (bridge.IPAM?.Config ?? []) as { Gateway?: string; Subnet?: string }[];
  if (Gateway) return Gateway;
  // a newly installed engine does not report its gateway until it is restarted, but uses the first address
  const [, network, last] = /^(\d+\.\d+\.\d+\.)(\d+)\//.exec(Subnet) ?? [];
  if (network !== undefined) return `${network}${Number(last) + 1}`;
  throw new Error(
    `the engine's network '${name}' has no address: set MILLRACE_WORKER_URL to an address that containers reach`,
  );
}
