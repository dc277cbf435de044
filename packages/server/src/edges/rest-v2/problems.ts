import { STATUS_CODES } from "node:http";
import type { FastifyInstance, FastifyReply } from "fastify";
import type { Refusal } from "../../errors.js";
import type { Emit } from "../../events.js";
import { linger } from "../shared/bodies/linger.js";
import { asRefusal } from "../shared/replies/replies.js";

/** Errors of REST v2 have the form of RFC 9457; a valid key without the right gets 403 (decisions: REST v2). */
export function tellProblems(app: FastifyInstance, { emit }: { readonly emit: Emit }): void {
  app.setErrorHandler((error, request, reply) => {
    const { url: route = "", bodyLimit } = request.routeOptions;
    const refusal = asRefusal(error, { id: request.id, route, bodyLimit }, emit);
    request.countedBody?.release();
    if (refusal.status === 413 || (refusal.status === 503 && !request.raw.complete)) linger(request.raw, reply);
    const isMisfit = typeof error === "object" && error !== null && "validation" in error && Boolean(error.validation);
    return sendProblem(reply, refusal, isMisfit ? 422 : statusOf(refusal));
  });
}

/** REST v2 tells a key without the right, and a resource in the wrong state, from other mistakes. */
function statusOf({ isForbidden, code, status }: Refusal): number {
  if (isForbidden) return 403;
  return code === "INVALID_STATE" ? 409 : status;
}

/** The names that fields have in REST v2, by the names that operations know them by. */
const fields: Readonly<Record<string, string>> = {
  imageName: "image",
  dockerStartCmd: "args",
  containerDiskInGb: "disk",
  containerRegistryAuthId: "registry",
  volumeInGb: "mounts.persistent.size",
  volumeMountPath: "mounts.persistent.path",
  gpuIds: "gpu",
  gpuTypeIds: "gpu.id",
  gpuCount: "gpu.count",
  cpuFlavorIds: "cpu.id",
  vcpuCount: "cpu.vcpuCount",
  workersMin: "workers.min",
  workersMax: "workers.max",
  idleTimeout: "workers.idleTimeout",
  scalerValue: "scaling",
  networkVolumeIds: "networkVolumes",
  executionTimeoutMs: "timeout",
  dataCenterId: "dataCenter",
};
const names = new RegExp(`\\b(${Object.keys(fields).join("|")})\\b`, "g");

function sendProblem(reply: FastifyReply, refusal: Refusal, status: number): FastifyReply {
  for (const [name, value] of Object.entries(refusal.headers)) {
    if (!reply.hasHeader(name) && (name !== "www-authenticate" || status === 401)) reply.header(name, value);
  }
  const { code } = refusal;
  const isQuery = reply.request.url.includes("/catalog/");
  const message = isQuery ? refusal.message : refusal.message.replaceAll(names, (name) => fields[name] as string);
  const problem = {
    title: STATUS_CODES[status] ?? "Error",
    status,
    detail: message,
    ...(status === 400 || status === 422 ? { errors: [message] } : {}),
    code,
    requestId: reply.request.id,
  };
  return reply.code(status).header("content-type", "application/problem+json").send(JSON.stringify(problem));
}
