import { v2 } from "@millrace/api";
import type { FastifyInstance, FastifyRequest } from "fastify";
import { joinCommand } from "../../domain/endpoints/template.js";
import { gbPerCpu } from "../../domain/hosts/cpu.js";
import { invalid, Refusal } from "../../errors.js";
import { forCaller } from "../../operations/access/visible.js";
import type { Parts } from "../../operations/needs.js";
import { listPods } from "../../operations/pods/list-pods.js";
import type { PodInput } from "../../operations/pods/pod-settings.js";
import { actOnPod, createPod, deletePod, findPod, updatePod } from "../../operations/pods/save-pod.js";
import { type PodView, podViewer } from "../../operations/pods/show-pods.js";
import { idOf } from "../shared/params.js";
import { sendList } from "../shared/replies/send-list.js";
import { containerInput } from "./endpoint-shape.js";
import { route } from "./route-schema.js";

type Found = Awaited<ReturnType<typeof findPod>>;

const tag = "pods";
const one = { tag, names: ["podId"] };
const own = (parts: Parts, request: FastifyRequest) => findPod(parts, request.caller, idOf(request, "podId"));

/** Pods: the routes that take a body. */
export function podWrites(app: FastifyInstance, parts: Parts): void {
  app.post(
    "/pods",
    route({
      operationId: "createPod",
      summary: "Create a pod",
      tag,
      body: v2.PodCreate,
      reply: v2.Pod,
      status: 201,
    }),
    async (request, reply) => {
      const pod = await createPod(parts, request.caller, creation(request.body as v2.PodCreate));
      return reply.code(201).send(viewer(parts, request)(pod));
    },
  );
  app.patch(
    "/pods/:podId",
    route({
      ...one,
      operationId: "updatePod",
      summary: "Change a pod; only the fields sent change. If its container changes, a running pod is made anew",
      body: v2.PodUpdate,
      reply: v2.Pod,
    }),
    async (request) => {
      const pod = await own(parts, request);
      const input = change(pod, request.body as v2.PodUpdate);
      return viewer(parts, request)(await updatePod(parts, request.caller, pod, input));
    },
  );
  app.post(
    "/pods/:podId/action",
    route({
      ...one,
      operationId: "podAction",
      summary: "Start, stop, restart or terminate a pod; terminate answers 204",
      body: v2.PodAction,
      reply: v2.Pod,
      mayBeEmpty: true,
      errors: [409],
    }),
    async (request, reply) => {
      const pod = await own(parts, request);
      const { action } = request.body as v2.PodAction;
      const { actions, status } = podViewer(parts)(pod);
      if (!actions.includes(action) && !pod.settings.pod.locked)
        throw new Refusal("INVALID_STATE", `A pod that is ${status} cannot ${action}: it can ${actions.join(" or ")}.`);
      if (action !== "terminate") return viewer(parts, request)(await actOnPod(parts, request.caller, pod, action));
      await deletePod(parts, request.caller, pod);
      return reply.code(204).send();
    },
  );
}

/** Pods: the routes without a body. */
export function podReads(app: FastifyInstance, parts: Parts): void {
  app.get("/pods", route({ operationId: "listPods", summary: "List pods", tag, reply: v2.Pods }), (request, reply) =>
    sendList(reply, listPods(parts, request.caller, {}), viewer(parts, request), "pods"),
  );
  app.get(
    "/pods/:podId",
    route({ ...one, operationId: "getPod", summary: "Show a pod", reply: v2.Pod }),
    async (request) => viewer(parts, request)(await own(parts, request)),
  );
  app.delete(
    "/pods/:podId",
    route({ ...one, operationId: "deletePod", summary: "Delete a pod with its own volume", errors: [409] }),
    async (request, reply) => {
      await deletePod(parts, request.caller, await own(parts, request));
      return reply.code(204).send();
    },
  );
}

function creation(body: v2.PodCreate): PodInput {
  const { name, templateId, gpu, cpu, mounts = {}, cloud, dataCenterIds, globalNetworking } = body;
  if ((gpu === undefined) === (cpu === undefined)) throw invalid("Send either 'gpu' or 'cpu'.");
  if (mounts.persistent && mounts.network) throw invalid("Send either 'mounts.persistent' or 'mounts.network'.");
  if (cpu && mounts.persistent) throw invalid("A CPU pod has no 'mounts.persistent': use 'mounts.network'.");
  const [network] = mounts.network ?? [];
  const path = mounts.persistent?.path ?? network?.path;
  return {
    ...containerInput(body),
    name,
    ...(templateId === undefined ? {} : { templateId }),
    ...(gpu ? { computeType: "GPU", gpuTypeIds: [gpu.id], gpuCount: gpu.count ?? 1 } : {}),
    ...(gpu?.allowedCudaVersions ? { allowedCudaVersions: gpu.allowedCudaVersions } : {}),
    ...(cpu ? { computeType: "CPU", cpuFlavorIds: [cpu.id], vcpuCount: cpu.vcpuCount } : {}),
    // the template's volume, if it has one, unless another mount is sent
    ...(templateId !== undefined && gpu && !body.mounts ? {} : { volumeInGb: mounts.persistent?.size ?? 0 }),
    ...(path === undefined ? {} : { volumeMountPath: path }),
    ...(network ? { networkVolumeId: network.volumeId } : {}),
    ...(cloud ? { cloudType: cloud } : {}),
    ...(dataCenterIds ? { dataCenterIds } : {}),
    ...(globalNetworking === undefined ? {} : { globalNetworking }),
  };
}

/** A change of a pod. The kind of its mount, and the network volume, stay as they were made. */
function change({ settings }: Found, body: v2.PodUpdate): PodInput {
  const { name, locked, globalNetworking, mounts = {} } = body;
  const { persistent, network } = mounts;
  const [volumeId] = settings.networkVolumeIds;
  if (persistent && network) throw invalid("Send either 'mounts.persistent' or 'mounts.network'.");
  if (network?.length === 0) throw invalid("A mount cannot be taken away: leave out 'mounts.network'.");
  if (persistent && (volumeId !== undefined || settings.pod.container.volumeInGb === 0))
    throw invalid("This pod was made without 'mounts.persistent', which cannot be added.");
  if (network && network[0]?.volumeId !== volumeId)
    throw invalid("The network volume of a pod cannot be changed: 'mounts.network' must name the one that it has.");
  const path = persistent?.path ?? network?.[0]?.path;
  return {
    ...containerInput(body),
    ...(name === undefined ? {} : { name }),
    ...(locked === undefined ? {} : { locked }),
    ...(globalNetworking === undefined ? {} : { globalNetworking }),
    ...(persistent ? { volumeInGb: persistent.size } : {}),
    ...(path === undefined ? {} : { volumeMountPath: path }),
  };
}

/** Pods in REST v2's nested shape. */
function viewer(parts: Parts, { caller }: FastifyRequest) {
  const show = podViewer(parts);
  return (pod: Found): v2.Pod => nested(forCaller(caller, pod, show(pod)), pod);
}

function nested(view: PodView, { settings }: Found): v2.Pod {
  const { gpu, statusDetail, machine } = view;
  const flavor = view.cpuFlavorId ?? "cpu3g";
  const vcpuCount = settings.vcpuCount ?? view.vcpuCount;
  return {
    id: view.id,
    name: view.name,
    status: view.status,
    ...(statusDetail === undefined ? {} : { statusDetail }),
    actions: view.actions as v2.Pod["actions"],
    image: view.image,
    args: joinCommand(view.dockerStartCmd),
    disk: view.containerDiskInGb,
    mounts: mountsOf(view),
    ports: [...view.ports],
    env: { ...view.env },
    registry: view.containerRegistryAuthId ?? null,
    ...(gpu ? { gpu: { id: gpu.id, count: gpu.count, ...cudaOf(settings) } } : {}),
    ...(gpu ? {} : { cpu: { id: flavor, vcpuCount, memory: vcpuCount * (gbPerCpu(flavor) ?? 4) } }),
    cloud: view.cloudType,
    dataCenterId: machine?.dataCenterId ?? null,
    template: view.templateId ?? null,
    cost: view.desiredStatus === "RUNNING" ? view.costPerHr : 0,
    locked: view.locked,
    globalNetworking: { enabled: view.globalNetworking },
    runtime: view.status === "RUNNING" ? { uptime: view.uptimeSeconds, ports: portsOf(view) } : null,
    createdAt: view.createdAt,
    startedAt: view.lastStartedAt ?? null,
  };
}

const cudaOf = ({ allowedCudaVersions }: Found["settings"]) =>
  allowedCudaVersions ? { allowedCudaVersions: [...allowedCudaVersions] } : {};

function mountsOf({ networkVolumeId, volumeInGb, volumeMountPath: path }: PodView): v2.Pod["mounts"] {
  if (networkVolumeId !== undefined) return { network: [{ volumeId: networkVolumeId, path }] };
  return volumeInGb > 0 ? { persistent: { size: volumeInGb, path } } : {};
}

/** The ports that a pod listens on, and where they are published. */
const portsOf = ({ ports, portMappings, publicIp }: PodView) =>
  ports.map((port) => {
    const [number = "0", type = "tcp"] = port.split("/");
    const mapped = portMappings?.[number] ?? null;
    return { private: Number(number), public: mapped, type, ip: mapped === null ? null : publicIp };
  });
