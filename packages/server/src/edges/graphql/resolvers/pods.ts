import { joinCommand } from "../../../domain/endpoints/template.js";
import { cpuFlavors, readInstance } from "../../../domain/hosts/cpu.js";
import { isSameType } from "../../../domain/hosts/gpu.js";
import { invalid } from "../../../errors.js";
import { forCaller, volumeFor } from "../../../operations/access/visible.js";
import { gpuCatalog } from "../../../operations/hosts/catalog.js";
import type { PodInput } from "../../../operations/pods/pod-settings.js";
import { actOnPod, createPod, deletePod, findPod } from "../../../operations/pods/save-pod.js";
import { type PodView, podViewer } from "../../../operations/pods/show-pods.js";
import { showVolume } from "../../../operations/show-resources.js";
import { type Context, entriesOf, type Fields, fromPairs, sent } from "./context.js";
import { wordsOf } from "./templates.js";

type Found = Awaited<ReturnType<typeof findPod>>;

/** Shows pods under GraphQL's names; hosts are looked at once for all pods of a query's list. */
export function podsView({ parts, caller }: Context) {
  const show = podViewer(parts);
  return (pod: Found) => {
    const view = forCaller(caller, pod, show(pod));
    const { env, ports, image, machine, networkVolumeId, cpuFlavorId, publicIp } = view;
    const volume = parts.registry.volume(networkVolumeId ?? "");
    return {
      ...view,
      imageName: image,
      dockerArgs: joinCommand(view.dockerStartCmd),
      ports: ports.join(","),
      env: (_: unknown, { answer }: Context) => answer.list(Object.keys(env), (name) => `${name}=${env[name]}`),
      podType: view.interruptible ? "INTERRUPTABLE" : "RESERVED",
      machine: machine && {
        ...machine,
        podHostId: `${view.id}-${view.machineId}`,
        gpuType: () => gpuTypeOf(parts, machine),
      },
      runtime: view.status === "RUNNING" ? runtimeOf(view) : null,
      networkVolume: volume ? volumeFor(caller, showVolume(parts, volume)) : null,
      cpuFlavor: cpuFlavorId === undefined ? null : { groupName: groupOf(cpuFlavorId), displayName: cpuFlavorId },
      ipAddress: publicIp === null ? null : { address: publicIp },
      savingsPlans: [],
    };
  };
}

const groupOf = (flavorId: string): string => cpuFlavors.find(({ id }) => id === flavorId)?.group ?? flavorId;

/** The type of the GPUs that a pod got; null if it got none. */
function gpuTypeOf(parts: Context["parts"], { gpuTypeId, gpuDisplayName }: NonNullable<PodView["machine"]>) {
  if (gpuTypeId === undefined) return null;
  const { memoryInGb = null } = gpuCatalog(parts).find(({ id }) => isSameType(id, gpuTypeId)) ?? {};
  return { id: gpuTypeId, displayName: gpuDisplayName, memoryInGb };
}

function runtimeOf({ ports, portMappings, publicIp, uptimeSeconds }: PodView) {
  const published = ports.flatMap((port) => {
    const [number = "", type = "tcp"] = port.split("/");
    const publicPort = portMappings?.[number];
    if (publicPort === undefined) return [];
    return [{ ip: publicIp, isIpPublic: publicIp !== null, privatePort: Number(number), publicPort, type }];
  });
  return { uptimeInSeconds: uptimeSeconds, ports: published, gpus: [] };
}

/** A pod's settings from an input object, whose names and forms differ from REST's. */
function podInput(input: Fields): PodInput {
  const { env, ports, dockerArgs, dockerStartCmd, startScript, gpuTypeId, gpuTypeIdList, countryCode } = input;
  const { dataCenterId, dataCenterIds, cloudType, globalNetwork } = input;
  if (startScript)
    throw invalid("'startScript' is not run here: leave it empty, and write the command into 'dockerArgs'.");
  const words = dockerArgs === undefined ? undefined : wordsOf(dockerArgs as string | null);
  const gpuTypes = (gpuTypeIdList as string[] | null | undefined) ?? (gpuTypeId ? [gpuTypeId as string] : undefined);
  const { name, imageName, templateId, networkVolumeId, volumeInGb, volumeMountPath, containerDiskInGb } = input;
  const { containerRegistryAuthId, dockerEntrypoint, supportPublicIp, stopAfter, terminateAfter, gpuCount } = input;
  return sent({
    name: name ?? undefined,
    imageName: imageName ?? undefined,
    templateId,
    networkVolumeId,
    volumeInGb: volumeInGb ?? undefined,
    volumeMountPath: volumeMountPath || undefined,
    containerDiskInGb: containerDiskInGb ?? undefined,
    containerRegistryAuthId: containerRegistryAuthId || undefined,
    dockerEntrypoint: dockerEntrypoint ?? undefined,
    dockerStartCmd: dockerStartCmd ?? (words && words.length > 0 ? words : undefined),
    ports: ports === undefined || ports === null ? undefined : entriesOf(ports as string),
    env: fromPairs(env as Parameters<typeof fromPairs>[0]) ?? undefined,
    gpuTypeIds: gpuTypes,
    gpuCount: gpuCount ?? undefined,
    countryCodes: countryCode ? [countryCode] : undefined,
    dataCenterIds: dataCenterIds ?? (dataCenterId ? [dataCenterId] : undefined),
    cloudType: cloudType === "ALL" ? undefined : cloudType,
    globalNetworking: globalNetwork ?? undefined,
    supportPublicIp: supportPublicIp ?? undefined,
    allowedCudaVersions: input.allowedCudaVersions ?? undefined,
    minCudaVersion: input.minCudaVersion || input.cudaVersion || undefined,
    minVcpuCount: input.minVcpuCount ?? undefined,
    minMemoryInGb: input.minMemoryInGb ?? undefined,
    stopAfter: stopAfter || undefined,
    terminateAfter: terminateAfter || undefined,
  });
}

async function deploy(input: PodInput, context: Context) {
  return podsView(context)(await createPod(context.parts, context.caller, input));
}

/** A pod on demand; with an instance of a CPU flavour, such as cpu3c-2-4, one without GPUs. */
async function deployOnDemand({ input }: { input?: Fields | null }, context: Context, interruptible = false) {
  const given = input ?? {};
  const isCpu = given.computeType === "CPU" || Boolean(given.instanceId) || Boolean(given.instanceIds);
  if (isCpu) return deployCpu({ input }, context);
  return deploy({ ...podInput(given), computeType: "GPU", ...(interruptible ? { interruptible } : {}) }, context);
}

async function deployCpu({ input }: { input?: Fields | null | undefined }, context: Context) {
  const given = input ?? {};
  const { instanceId, instanceIds } = given as { instanceId?: string | null; instanceIds?: string[] | null };
  const instances = instanceIds ?? (instanceId ? [instanceId] : ["cpu3c-2-4"]);
  const first = readInstance(instances[0] ?? "");
  if (first === undefined || first.cpus < 1 || first.cpus > 9_999 || first.memoryGb > 99_999)
    throw invalid(`'${String(instances[0]).slice(0, 80)}' in instanceId is not an instance such as cpu3c-2-4.`);
  const compute = { computeType: "CPU" as const, instanceIds: instances, cpuFlavorIds: [first.flavor] };
  return deploy({ ...podInput(given), ...compute, vcpuCount: first.cpus }, context);
}

const own = ({ parts, caller }: Context, podId: string) => findPod(parts, caller, podId);

async function resume({ input }: { input: { podId: string; gpuCount?: number | null } }, context: Context) {
  const pod = await own(context, input.podId);
  const more = input.gpuCount ? { gpuCount: input.gpuCount } : {};
  return podsView(context)(await actOnPod(context.parts, context.caller, pod, "start", more));
}

async function stop({ input }: { input: { podId: string } }, context: Context) {
  const pod = await own(context, input.podId);
  return podsView(context)(await actOnPod(context.parts, context.caller, pod, "stop"));
}

async function terminate({ input }: { input: { podId: string } }, context: Context) {
  await deletePod(context.parts, context.caller, await own(context, input.podId));
  return null;
}

/** Null if there is none for this key. */
async function pod({ input }: { input?: { podId?: string | null } | null }, context: Context) {
  const id = input?.podId ?? "";
  const { parts, caller } = context;
  if (caller.scope.kind === "endpoints") return null;
  await parts.registry.known("endpoint", id, () => parts.registry.pod(id));
  const found = parts.registry.pod(id);
  return found?.ownerNo === caller.ownerNo && found.deletedAt === undefined ? podsView(context)(found) : null;
}

export const podResolvers = {
  pod,
  podFindAndDeployOnDemand: (args: { input?: Fields | null }, context: Context) => deployOnDemand(args, context),
  podRentInterruptable: (args: { input?: Fields | null }, context: Context) => deployOnDemand(args, context, true),
  deployCpuPod: deployCpu,
  podStop: stop,
  podResume: resume,
  podBidResume: resume,
  podTerminate: terminate,
};
