import { mkdirSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import type { Endpoint, EndpointSettings } from "../../domain/endpoints/endpoint.js";
import {
  inheritedNames,
  podEnvironment,
  type WorkerFacts,
  workerEnvironment,
} from "../../domain/endpoints/environment.js";
import { readPort } from "../../domain/endpoints/ports.js";
import { sourceOf, type TemplateSettings } from "../../domain/endpoints/template.js";
import { neededCuda } from "../../domain/hosts/cuda.js";
import { untoldGpu } from "../../domain/hosts/gpu.js";
import type { HostFacts } from "../../domain/hosts/host.js";
import { hasOwnVolume, isPod, ownVolumeId, type Pod } from "../../domain/pods/pod.js";
import type { Resources, WorkerHandle } from "../../domain/workers/worker.js";
import {
  addressText,
  namedPorts,
  ownPortDefault,
  readAddress,
  type WorkerAddress,
} from "../../domain/workers/worker-address.js";
import type { LiveWorker } from "../../memory/registry.js";
import { fillSecrets } from "../../operations/access/save-secret.js";
import type { Needs } from "../../operations/needs.js";
import { noteVolumeHost } from "../../operations/pods/note-volume-host.js";
import { keepVolume } from "../../operations/volumes/keep-volume.js";
import type { ImageSpec, WorkerSpec } from "../../provider.js";
import { freePort } from "./free-port.js";

export interface LaunchOptions {
  /**
   * The URL where workers of this host reach us, also from a network of their own. Rejects with one sentence.
   */
  readonly workerUrl: (hasOwnNetwork: boolean) => Promise<string>;
  /**
   * Where other servers reach this machine, for its workers' own HTTP servers; without other servers, the loopback
   * address.
   */
  readonly hostAddress?: string;
  /** One HOME per endpoint, so that downloaded models stay. */
  readonly homesDir: string;
  readonly env: Readonly<Record<string, string | undefined>>;
}

type Launching = Needs<"registry" | "here" | "vault" | "emit" | "secrets">;
/** Makes the environment of what is launched, a worker or a pod. */
type Environment = (facts: WorkerFacts) => Record<string, string>;

/** Where containers find the network volume. */
const volumeTarget = "/runpod-volume";

/** A worker's specification, the server's URL for it, and the address of its own HTTP server if it has one. */
export interface Launch {
  readonly spec: WorkerSpec;
  /** Absent for a pod, which never calls us. */
  readonly workerUrl?: string;
  readonly address?: string;
}

/** Works out how a worker is started. Throws one sentence if it may not be. */
export async function launchOf(
  needs: Launching,
  options: LaunchOptions,
  { row }: LiveWorker,
  secret: string,
): Promise<Launch> {
  const endpoint = needs.registry.endpointByNo(row.endpointNo);
  const release = await needs.registry.release(row.endpointNo, row.version);
  if (!endpoint || !release) throw new Error("its endpoint or its version no longer exists");
  const { template: settings, settings: own } = release;
  const isImage = sourceOf(settings.imageName) === "image";
  const pod = isPod(endpoint) ? endpoint : undefined;
  const workerUrl = pod ? undefined : await options.workerUrl(isImage);
  // a pod's container is its own, whichever template it was copied from
  const isOwn = pod !== undefined || needs.registry.template(own.templateId)?.ownerNo === endpoint.ownerNo;
  const { env: variables, hidden } = await fillSecrets(needs, endpoint.ownerNo, { env: settings.env, isOwn }, own.env);
  const serves = endpoint.settings.type === "LB";
  const address = serves ? await addressOf(needs, options, isImage, variables) : undefined;
  const host = factsOf(needs, row.hostNo);
  const facts = {
    workerId: row.id,
    endpointId: endpoint.id,
    secret,
    workerUrl: workerUrl ?? "",
    hostname: hostname(),
    location: host.location ?? "",
    ...shareOf(row.resources, host),
    port: address?.port,
    own: variables,
  };
  const volume = (await volumeOf(needs, own, host)) ?? (pod && (await podVolumeOf(needs, pod, row.hostNo, host)));
  const publicKey = needs.registry.user(endpoint.ownerNo)?.pubKey ?? "";
  const environment: Environment = pod ? (facts) => podEnvironment(facts, publicKey) : workerEnvironment;
  const targets = pod ? [mountPath(settings)] : volumeTargets(settings);
  const spec = isImage
    ? {
        ...ofImage(needs, settings, facts, { volume, targets, environment }),
        ...limitsOf(row.resources, own),
        podClass: own.podClass,
      }
    : ofDirectory(needs, options, endpoint, settings, facts, { volume, environment });
  return {
    spec: { ...spec, hidden },
    ...(workerUrl === undefined ? {} : { workerUrl }),
    ...(address ? { address: addressText(address) } : {}),
  };
}

/** Where a worker's HTTP server will be. In a network of its own, its host is not known before it runs. */
async function addressOf(
  needs: Launching,
  { hostAddress = "127.0.0.1" }: LaunchOptions,
  hasOwnNetwork: boolean,
  variables: Readonly<Record<string, string>>,
): Promise<WorkerAddress> {
  const named = namedPorts(variables);
  const port = named.port ?? (hasOwnNetwork ? ownPortDefault : await drawPort(needs));
  return { host: hasOwnNetwork ? "" : hostAddress, port, healthPort: named.healthPort ?? port };
}

/** A started worker's handle, and its address, now that its host is known. */
export function whereIs(
  { address: told }: LiveWorker["row"],
  handle: WorkerHandle,
): { readonly handle: WorkerHandle; readonly address?: string } {
  const address = readAddress(told);
  const host = handle.network?.address;
  return { handle, ...(address && host !== undefined ? { address: addressText({ ...address, host }) } : {}) };
}

/** Picks a port for a worker of this host that no other worker has. */
function drawPort({ registry, here }: Launching): Promise<number> {
  const mine = registry.liveWorkers().filter(({ row }) => here.tends(row.hostNo));
  return freePort(new Set(mine.map(({ row }) => readAddress(row.address)?.port)));
}

/** What the host of a worker has: this machine, or a cluster that this server tends. */
const factsOf = ({ here }: Launching, hostNo: number): HostFacts =>
  here.hosts().find(({ no }) => no === hostNo)?.facts ?? here.facts();

type Volume = (NonNullable<WorkerFacts["volume"]> & { readonly sizeGb?: number }) | undefined;
type Facts = Omit<WorkerFacts, "volume" | "home" | "inherited">;

/** The resources that a worker is told about: its share, or the whole machine. */
const shareOf = (resources: Resources | undefined, facts: HostFacts) => ({
  cpuCount: resources?.cpus ?? Math.max(1, facts.cpus),
  memoryGb: Math.round((resources?.memoryMib ?? facts.memoryMib) / 1_024),
  gpus: resources?.gpus ?? [],
  hostHasGpus: facts.gpus.length > 0 || facts.gpusEnforced,
});

async function volumeOf(needs: Launching, settings: EndpointSettings, host: HostFacts): Promise<Volume> {
  const [id] = settings.networkVolumeIds;
  if (id === undefined) return undefined;
  // it may have been made or enlarged on another host
  const volume = await needs.registry.known("volume", id, () => needs.registry.volume(id));
  if (!volume) throw new Error(`its network volume '${id}' is deleted`);
  return keptAt(needs, volume, host);
}

/** On a machine a volume is a directory; a cluster keeps it itself. */
const keptAt = async (needs: Launching, { id, size }: { id: string; size: number }, host: HostFacts) =>
  host.cluster ? { id, path: "", sizeGb: size } : { id, path: await keepVolume(needs, { id, size }) };

/** A pod's own volume, which is made on the host of its first start and stays there. */
async function podVolumeOf(needs: Launching, pod: Pod, hostNo: number, host: HostFacts): Promise<Volume> {
  if (!hasOwnVolume(pod.settings)) return undefined;
  await noteVolumeHost(needs, pod, hostNo);
  return keptAt(needs, { id: ownVolumeId(pod.id), size: pod.settings.pod.container.volumeInGb }, host);
}

function ofDirectory(
  needs: Launching,
  options: LaunchOptions,
  endpoint: Endpoint,
  { imageName, dockerEntrypoint, dockerStartCmd }: TemplateSettings,
  facts: Facts,
  { volume, environment }: { volume: Volume; environment: Environment },
): WorkerSpec {
  if (!needs.here.localProcesses) throw new Error("local processes are turned off (MILLRACE_LOCAL_PROCESSES)");
  if (!needs.registry.isFirstAdmin(endpoint.ownerNo))
    throw new Error("only the first admin's endpoints may run local processes");
  const home = join(options.homesDir, endpoint.id);
  mkdirSync(home, { recursive: true, mode: 0o700 });
  const inherited = inheritedNames.flatMap((name) =>
    options.env[name] === undefined ? [] : [[name, options.env[name]] as const],
  );
  return {
    workerId: facts.workerId,
    from: { directory: imageName },
    entrypoint: dockerEntrypoint,
    command: dockerStartCmd,
    env: environment({ ...facts, volume, home, inherited: Object.fromEntries(inherited) }),
    mounts: [],
  };
}

/** What a worker made from an image may use. */
const limitsOf = (resources: Resources | undefined, settings: EndpointSettings) => ({
  ...gpusOf(resources?.gpus ?? [], settings),
  cpus: resources?.cpus,
  memoryMib: resources?.memoryMib,
});

function gpusOf(gpus: Resources["gpus"], settings: EndpointSettings): Pick<WorkerSpec, "gpus" | "gpuWish"> {
  if (gpus.length === 0) return {};
  const { gpuTypeIds: types } = settings;
  if (gpus.some(({ id }) => id === untoldGpu))
    return { gpuWish: { count: gpus.length, types, minCuda: neededCuda(settings) } };
  return { gpus: gpus.map(({ id }) => id) };
}

function authOf(
  { registry, vault }: Launching,
  { containerRegistryAuthId }: TemplateSettings,
): ImageSpec["from"]["auth"] {
  const auth = containerRegistryAuthId === undefined ? undefined : registry.registryAuth(containerRegistryAuthId);
  return auth && { username: vault.open(auth.username), password: vault.open(auth.password) };
}

function ofImage(
  needs: Launching,
  settings: TemplateSettings,
  facts: Facts,
  { volume, targets, environment }: { volume: Volume; targets: readonly string[]; environment: Environment },
): ImageSpec {
  const { imageName, dockerEntrypoint, dockerStartCmd, containerDiskInGb } = settings;
  const seen = volume && { id: volume.id, path: targets[0] ?? volumeTarget };
  return {
    workerId: facts.workerId,
    from: { image: imageName, auth: authOf(needs, settings) },
    entrypoint: dockerEntrypoint,
    command: dockerStartCmd,
    // it inherits none of our environment, and its home is its image's
    env: environment({ ...facts, volume: seen, home: undefined, inherited: {} }),
    diskGb: containerDiskInGb,
    ports: settings.ports.map(readPort).filter((port) => port !== undefined),
    mounts: volume
      ? targets.map((target) => ({ target, volumeId: volume.id, path: volume.path, sizeGb: volume.sizeGb }))
      : [],
  };
}

/** The path where images look for the volume, and the path that the template asks for. */
const volumeTargets = (settings: TemplateSettings): string[] => [
  ...new Set([volumeTarget, ...(settings.isMountPathGiven ? [mountPath(settings)] : [])]),
];
const mountPath = ({ volumeMountPath }: TemplateSettings): string => volumeMountPath.replace(/(?<=.)\/+$/, "");
