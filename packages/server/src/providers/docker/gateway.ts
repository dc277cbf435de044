import type { Engine } from "./engine.js";
import { answered, away, isAway, statusOf } from "./failures.js";

/** The address of the engine's machine that containers of their network see. Rejects with one sentence where it is not to be found. */
export async function gatewayOf({ docker, host, network: name }: Engine): Promise<string> {
  const bridge = await answered(docker.getNetwork(name).inspect(), host).catch((error) => {
    if (statusOf(error) === 404)
      throw new Error(`the engine has no network '${name}' (MILLRACE_DOCKER_NETWORK): docker network create makes one`);
    throw isAway(error) ? away(error, host) : error;
  });
  const [{ Gateway, Subnet = "" } = {}] = (bridge.IPAM?.Config ?? []) as { Gateway?: string; Subnet?: string }[];
  if (Gateway) return Gateway;
  // an engine that was just installed does not say it until it is started again: it takes the first address
  const [, network, last] = /^(\d+\.\d+\.\d+\.)(\d+)\//.exec(Subnet) ?? [];
  if (network !== undefined) return `${network}${Number(last) + 1}`;
  throw new Error(
    `the engine's network '${name}' has no address: set MILLRACE_WORKER_URL to one that containers reach`,
  );
}
