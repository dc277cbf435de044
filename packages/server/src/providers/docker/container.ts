import { constants } from "node:os";
import type Docker from "dockerode";
import type { Exit, WorkerHandle, WorkerNetwork } from "../../domain/workers/worker.js";
import { limits } from "../../limits/index.js";
import type { ImageSpec, Mount, Sighting } from "../../provider.js";
import { keptCapabilities } from "../images/container.js";
import type { Labels } from "./ends.js";
import { defaultNetwork, type EngineOptions } from "./engine.js";
import { engineVolume } from "./engine-volume.js";
import type { Machine } from "./image.js";

/** The name by which a worker's container is found. */
export const nameOf = (workerId: string) => `millrace-${workerId}`;

/** The options of a worker's container: it may do no more than its image's own processes need. */
export function containerOptions(
  { workerId, from, entrypoint, command, env, mounts, ports = [], gpus, cpus, memoryMib, diskGb }: ImageSpec,
  labels: Labels,
  machine: Machine,
  { network = defaultNetwork, publishOn, keepsVolumes = false }: EngineOptions = {},
): Docker.ContainerCreateOptions {
  return {
    name: nameOf(workerId),
    Image: from.image,
    Env: Object.entries(env).map(([name, value]) => `${name}=${value}`),
    ...(entrypoint.length > 0 ? { Entrypoint: [...entrypoint] } : {}),
    ...(command.length > 0 ? { Cmd: [...command] } : {}),
    Labels: labels,
    ExposedPorts: Object.fromEntries(ports.map((port) => [`${port}/tcp`, {}])),
    HostConfig: {
      ...(publishOn === undefined ? {} : { PortBindings: bindings(ports, publishOn) }),
      ...(network === defaultNetwork ? {} : { NetworkMode: network }),
      Init: true, // a container's first process ignores signals that it does not handle; an init process does not
      CapDrop: ["ALL"],
      CapAdd: keptCapabilities,
      SecurityOpt: ["no-new-privileges"],
      PidsLimit: limits.containerProcessesMax,
      // a container that uses up the machine's memory must not take this server down with it
      Memory: memoryMib === undefined ? shareOf(machine) : memoryMib * mebibyte,
      // an engine refuses more CPUs than its machine has
      ...(cpus === undefined ? {} : { NanoCpus: Math.round(Math.min(cpus, machine.cpus) * 1e9) }),
      ...(gpus === undefined || gpus.length === 0 ? {} : { DeviceRequests: [gpuRequest(gpus)] }),
      ...(diskGb === undefined || diskGb === 0 || !machine.boundsDisks ? {} : { StorageOpt: { size: `${diskGb}G` } }),
      OomScoreAdj: limits.containerOomScore,
      Mounts: mounts.map((mount) => mountOf(mount, keepsVolumes)),
      LogConfig: { Type: "json-file", Config: { "max-size": String(limits.logFileBytesMax), "max-file": "2" } },
    },
  };
}

/** Publishes each port at a port that the engine picks. */
const bindings = (ports: readonly number[], address: string) =>
  Object.fromEntries(ports.map((port) => [`${port}/tcp`, [{ HostIp: address, HostPort: "" }]]));

const mebibyte = 2 ** 20;
const shareOf = ({ memoryBytes }: Machine) => Math.floor(memoryBytes * limits.containerMemoryShare);

/** Requests GPUs by id, from whatever GPU runtime the engine has. */
const gpuRequest = (ids: readonly string[]) => ({ Driver: "", DeviceIDs: [...ids], Capabilities: [["gpu"]] });

const local = { Name: "local", Options: {} };

/** A network volume is a directory of the engine's machine, or one of the engine's own volumes. */
function mountOf({ target, volumeId, path }: Mount, keepsVolumes: boolean): Docker.MountSettings {
  if (!keepsVolumes) return { Type: "bind", Source: path, Target: target };
  const name = engineVolume(volumeId);
  return {
    Type: "volume",
    Source: name,
    Target: target,
    // as with a directory, the image's own files there are hidden, not copied
    VolumeOptions: { NoCopy: true, Labels: { "millrace.volume": name }, DriverConfig: local },
  };
}

/** Identifies a container by its name, which is known before it is made, and says where it is reached. */
export function handleOf(workerId: string, found?: Docker.ContainerInspectInfo): WorkerHandle {
  const networks = Object.values(found?.NetworkSettings?.Networks ?? {});
  const address = networks.find(({ IPAddress }) => IPAddress)?.IPAddress;
  const published = publishedOf(found?.NetworkSettings?.Ports);
  return {
    provider: "docker",
    ref: { container: nameOf(workerId) },
    network: { reachedFrom: "host", ...(address ? { address } : {}), ...published },
  };
}

/** A worker without a container, or whose container was never started. Its name is unique: it runs nowhere else. */
export const absent: Sighting = { state: "unknown", why: "its container was gone", isAbsent: true };

/** Where a container's ports are published on the engine's machine. */
function publishedOf(
  ports: Docker.ContainerInspectInfo["NetworkSettings"]["Ports"] | undefined,
): Pick<WorkerNetwork, "published" | "publishedAt"> {
  const published: Record<string, number> = {};
  let publishedAt: string | undefined;
  for (const [port, bindings] of Object.entries(ports ?? {})) {
    const [binding] = bindings ?? [];
    if (!binding) continue;
    published[port.replace(/\/tcp$/, "")] = Number(binding.HostPort);
    publishedAt = binding.HostIp;
  }
  return publishedAt === undefined ? {} : { published, publishedAt };
}

/** A container's state as its engine reports it; `isOurs`: whether we killed it. */
export function sightingOf(found: Docker.ContainerInspectInfo, workerId: string, isOurs: boolean): Sighting {
  const { State } = found;
  if (State.Running) return { state: "running", handle: handleOf(workerId, found) };
  if (State.Status === "created") return absent; // the server died before starting it
  return { state: "ended", exit: exitOf(State, isOurs) };
}

/** The init process reports a signal as 128 plus its number, as shells do. */
function exitOf({ ExitCode, OOMKilled }: { ExitCode: number; OOMKilled: boolean }, isOurs: boolean): Exit {
  const [signal] = Object.entries(constants.signals).find(([, number]) => ExitCode === 128 + number) ?? [];
  const how = signal === undefined ? { code: ExitCode } : { signal };
  if (OOMKilled && ExitCode !== 0) return { ...how, note: "it ran out of memory", cause: "memory" };
  if (signal !== "SIGKILL" || isOurs) return ExitCode === 126 || ExitCode === 127 ? { ...how, cause: "image" } : how;
  // OOMKilled is not set if the whole machine ran out of memory
  return { ...how, note: "it was killed (137), as the system does where memory runs out", cause: "memory" };
}
