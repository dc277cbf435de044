import { mkdirSync } from "node:fs";
import { availableParallelism, hostname, totalmem } from "node:os";
import { join } from "node:path";
import type { Endpoint } from "../domain/endpoint.js";
import { inheritedNames, type WorkerPlace, workerEnvironment } from "../domain/environment.js";
import { isPath, type TemplateSettings } from "../domain/template.js";
import type { Needs } from "../operations/needs.js";
import type { Launch } from "../provider.js";
import type { LiveWorker } from "../registry.js";

export interface LaunchOptions {
  /** Where workers of this host reach us: containers stand in a network of their own. Rejects with one sentence. */
  readonly workerUrl: (isContainer: boolean) => Promise<string>;
  /** One HOME per endpoint, so that downloaded models stay. */
  readonly homesDir: string;
  readonly env: Readonly<Record<string, string | undefined>>;
}

type Launching = Needs<"registry" | "place">;

/** Where containers see the network volume. */
const volumeTarget = "/runpod-volume";

/** What a worker is started from, and the address it is told. Throws one sentence where it may not be started. */
export async function launchOf(
  needs: Launching,
  options: LaunchOptions,
  { row }: LiveWorker,
  secret: string,
): Promise<{ workerUrl: string; launch: Launch }> {
  const endpoint = needs.registry.endpointByNo(row.endpointNo);
  const template = endpoint && needs.registry.template(endpoint.settings.templateId);
  if (!endpoint || !template) throw new Error("its endpoint or template is gone");
  const { settings } = template;
  const isContainer = !isPath(settings.imageName);
  const workerUrl = await options.workerUrl(isContainer);
  const place = {
    workerId: row.id,
    endpointId: endpoint.id,
    secret,
    workerUrl,
    hostname: hostname(),
    location: needs.place.location ?? "",
    cpuCount: availableParallelism(),
    memoryGb: Math.round(totalmem() / 2 ** 30),
    gpus: [],
    own: { ...settings.env, ...endpoint.settings.env },
  };
  const volume = volumeOf(needs, endpoint);
  const launch = isContainer
    ? containerLaunch(settings, place, volume)
    : processLaunch(needs, options, endpoint, settings, place, volume);
  return { workerUrl, launch };
}

type Volume = WorkerPlace["volume"];
type Place = Omit<WorkerPlace, "volume" | "home" | "inherited">;

function volumeOf({ place }: Launching, { settings }: Endpoint): Volume {
  const [id] = settings.networkVolumeIds;
  if (id === undefined) return undefined;
  const path = join(place.volumesDir, id);
  mkdirSync(path, { recursive: true, mode: 0o700 }); // it may have been made at another host
  return { id, path };
}

function processLaunch(
  needs: Launching,
  options: LaunchOptions,
  endpoint: Endpoint,
  { imageName, dockerEntrypoint, dockerStartCmd }: TemplateSettings,
  place: Place,
  volume: Volume,
): Launch {
  if (!needs.place.localProcesses) throw new Error("local processes are turned off (MILLRACE_LOCAL_PROCESSES)");
  if (!needs.registry.user(endpoint.ownerNo)?.isAdmin)
    throw new Error("only the admin's endpoints may run local processes");
  const home = join(options.homesDir, endpoint.id);
  mkdirSync(home, { recursive: true, mode: 0o700 });
  const inherited = inheritedNames.flatMap((name) =>
    options.env[name] === undefined ? [] : [[name, options.env[name]] as const],
  );
  return {
    workerId: place.workerId,
    directory: imageName,
    command: [...dockerEntrypoint, ...dockerStartCmd],
    env: workerEnvironment({ ...place, volume, home, inherited: Object.fromEntries(inherited) }),
  };
}

function containerLaunch(
  { imageName, dockerEntrypoint, dockerStartCmd }: TemplateSettings,
  place: Place,
  volume: Volume,
): Launch {
  const seen = volume && { ...volume, path: volumeTarget };
  return {
    workerId: place.workerId,
    image: imageName,
    entrypoint: dockerEntrypoint,
    command: dockerStartCmd,
    // of our own environment a container gets nothing, and its home is its image's
    env: workerEnvironment({ ...place, volume: seen, home: undefined, inherited: {} }),
    mounts: volume ? [{ source: volume.path, target: volumeTarget }] : [],
  };
}
