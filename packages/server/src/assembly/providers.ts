import type { Config } from "../config.js";
import type { Emit } from "../events.js";
import type { HeldVolumes, Here } from "../operations/needs.js";
import type { JobSecrets, Provider } from "../provider.js";
import { combined } from "../providers/combined.js";
import { DockerProvider } from "../providers/docker/docker-provider.js";
import { type Engine, engineAddress, openEngine } from "../providers/docker/engine.js";
import { engineFacts } from "../providers/docker/facts.js";
import { gatewayOf } from "../providers/docker/gateway.js";
import { noContainers } from "../providers/no-containers.js";
import { processProvider } from "../providers/process/process-provider.js";

/** All providers of a server as one, and what else the service may ask of them. */
export interface Providers {
  readonly provider: Provider;
  /** Whether workers can be made from images right now. */
  readonly runsImages: () => Promise<boolean>;
  readonly imageComplaint: Here["imageComplaint"];
  readonly heldVolumes: HeldVolumes | undefined;
  /** The address of this machine in the network of workers that have one of their own. */
  readonly address: (() => Promise<string>) | undefined;
}

interface Opening {
  readonly hostId: string;
  readonly logsDir: string;
  readonly env: NodeJS.ProcessEnv;
  readonly emit: Emit;
  readonly jobSecrets: JobSecrets;
}

/** Opens the providers that the settings name: the only place that knows which kinds there are. */
export function openProviders(config: Config, opening: Opening): Providers {
  const { engine, containers } = findContainers(config, opening);
  const processes = processProvider({ dataDir: config.dataDir, logsDir: opening.logsDir, awayMs: config.awayMs });
  const facts = engine && engineFacts(engine);
  return {
    provider: combined({ process: processes, docker: containers }, ({ from }) =>
      "image" in from ? "docker" : "process",
    ),
    runsImages: facts ? facts.isThere : async () => false,
    imageComplaint: facts?.imageComplaint,
    heldVolumes: config.dockerVolumes ? facts?.volumes : undefined,
    address: engine && (() => gatewayOf(engine)),
  };
}

/**
 * Containers, run by the engine that this server's environment points to. If there is a problem with it, only
 * containers are affected.
 */
function findContainers(
  config: Config,
  { hostId, logsDir, env, emit, jobSecrets }: Opening,
): { readonly engine: Engine | undefined; readonly containers: Provider<never> } {
  const without = (why: string) => ({ engine: undefined, containers: noContainers(why, logsDir) });
  if (!config.containers)
    return without("container images are turned off here (MILLRACE_CONTAINERS); use a directory as the image");
  try {
    const { dockerNetwork: network, dockerPublish: publishOn, dockerVolumes: keepsVolumes } = config;
    const engine = openEngine(engineAddress(env), { network, publishOn, keepsVolumes });
    const warn = (message: string) => emit({ type: "server.warning", message });
    return { engine, containers: new DockerProvider(engine, hostId, logsDir, { jobSecrets, warn }) };
  } catch (error) {
    return without(error instanceof Error ? error.message : String(error));
  }
}
