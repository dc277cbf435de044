import * as api from "@millrace/api";
import type { FastifyInstance, FastifyRequest } from "fastify";
import Type from "typebox";
import { invalid } from "../../errors.js";
import { forCaller } from "../../operations/access/visible.js";
import type { Parts } from "../../operations/needs.js";
import { listPods, type PodFilter } from "../../operations/pods/list-pods.js";
import type { PodInput } from "../../operations/pods/pod-settings.js";
import { actOnPod, createPod, deletePod, findPod, type PodAct, updatePod } from "../../operations/pods/save-pod.js";
import { podViewer } from "../../operations/pods/show-pods.js";
import { showTemplate, showVolume } from "../../operations/show-resources.js";
import { idOf, listOf, params } from "../shared/params.js";
import { sendList } from "../shared/replies/send-list.js";
import { deletion, doc, errors, patches, writeErrors } from "./route-schema.js";

type Found = Awaited<ReturnType<typeof findPod>>;
type Query = Readonly<Record<string, string | readonly string[] | undefined>>;

const tag = "pods";
const one = (what: string) => Type.Optional(Type.String({ description: what }));
const some = (what: string) =>
  Type.Optional(
    Type.Union([Type.String(), Type.Array(Type.String())], {
      description: `${what}: several in a comma-separated text, or repeated.`,
    }),
  );
const included = {
  includeMachine: one("true: include the machine; it is always included once there is one."),
  includeNetworkVolume: one("true: include the network volume."),
  includeSavingsPlans: one("true: include savings plans, of which there are none here."),
  includeTemplate: one("true: include the template."),
  includeWorkers: one("Pods have no workers."),
};
const filters = Type.Object({
  id: one("The pod's id."),
  name: one("Its whole name."),
  imageName: one("Its image."),
  templateId: one("The template that it was made from."),
  networkVolumeId: one("Its network volume."),
  endpointId: one("Pods belong to no endpoint, so that none match."),
  computeType: Type.Optional(api.PodCreate.properties.computeType.anyOf[0]),
  desiredStatus: Type.Optional(api.Pod.properties.desiredStatus),
  gpuTypeId: some("GPU types"),
  cpuFlavorId: some("CPU flavours"),
  dataCenterId: some("Data centres"),
  ...included,
});

/** A pod as a caller sees it, with what the query includes. */
function viewer(parts: Parts, { caller, query: asked }: FastifyRequest) {
  const query = asked as Query;
  const show = podViewer(parts);
  const isAsked = (name: keyof typeof included) => query[name] === "true";
  return (pod: Found) => {
    const volume = parts.registry.volume(pod.settings.networkVolumeIds[0] ?? "");
    const template = parts.registry.template(pod.settings.templateId);
    return {
      ...forCaller(caller, pod, show(pod)),
      ...(isAsked("includeNetworkVolume") && volume ? { networkVolume: showVolume(parts, volume) } : {}),
      ...(isAsked("includeTemplate") && template
        ? { template: forCaller(caller, template, showTemplate(template)) }
        : {}),
      ...(isAsked("includeSavingsPlans") ? { savingsPlans: [] } : {}),
    };
  };
}

const own = (parts: Parts, request: FastifyRequest) => findPod(parts, request.caller, idOf(request, "podId"));

/** Pods: the routes that take a body. */
export function podWrites(app: FastifyInstance, parts: Parts): void {
  app.post(
    "/pods",
    {
      schema: { summary: "Create a pod", tags: [tag], body: api.PodCreate, response: { 201: api.Pod, ...writeErrors } },
    },
    async (request, reply) => {
      const pod = await createPod(parts, request.caller, request.body as PodInput);
      return reply.code(201).send(viewer(parts, request)(pod));
    },
  );
  const schema = {
    summary: "Change a pod; only the fields sent change. If its container changes, a running pod is made anew",
    tags: [tag],
    params: params("podId"),
    body: api.PodUpdate,
    response: { 200: api.Pod, ...writeErrors },
  };
  const update = async (request: FastifyRequest) => {
    const pod = await own(parts, request);
    return viewer(parts, request)(await updatePod(parts, request.caller, pod, request.body as PodInput));
  };
  patches(app, "/pods/:podId", schema, update);
  app.put("/pods/:podId", { schema }, update); // what a community client sends
}

/** Pods: the routes without a body. */
export function podReads(app: FastifyInstance, parts: Parts): void {
  app.get("/pods", doc("List pods", tag, Type.Array(api.Pod), { querystring: filters }), (request, reply) =>
    sendList(reply, listPods(parts, request.caller, filterOf(request.query as Query)), viewer(parts, request)),
  );
  app.get(
    "/pods/:podId",
    doc("Show a pod", tag, api.Pod, { params: params("podId"), querystring: Type.Object(included) }),
    async (request) => viewer(parts, request)(await own(parts, request)),
  );
  app.delete(
    "/pods/:podId",
    deletion("Delete a pod with its own volume; a network volume stays", tag, "podId"),
    async (request, reply) => {
      await deletePod(parts, request.caller, await own(parts, request));
      return reply.code(204).send();
    },
  );
  for (const [act, summary] of Object.entries(acts)) {
    app.post(
      `/pods/:podId/${act}`,
      { schema: { summary, tags: [tag], params: params("podId"), response: { 200: api.Pod, ...errors } } },
      async (request) => {
        const pod = await own(parts, request);
        return viewer(parts, request)(await actOnPod(parts, request.caller, pod, act as PodAct));
      },
    );
  }
}

const acts: Readonly<Record<PodAct, string>> = {
  start: "Start a pod that was stopped, with the volume that it had",
  stop: "Stop a pod; its volume is kept, its GPUs are given back",
  restart: "Stop a running pod's container and start a new one",
  reset: "Start a pod with a new container, whether it runs or not",
};

function filterOf(query: Query): PodFilter {
  const text = (name: string) => {
    const value = query[name];
    if (value !== undefined && typeof value !== "string") throw invalid(`Send '${name}' once.`);
    return value;
  };
  return {
    id: text("id"),
    name: text("name"),
    imageName: text("imageName"),
    templateId: text("templateId"),
    networkVolumeId: text("networkVolumeId"),
    endpointId: text("endpointId"),
    computeType: text("computeType"),
    desiredStatus: text("desiredStatus"),
    gpuTypeIds: listOf(query.gpuTypeId),
    cpuFlavorIds: listOf(query.cpuFlavorId),
    dataCenterIds: listOf(query.dataCenterId),
  };
}
