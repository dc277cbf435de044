import Type, { type Static } from "typebox";
import { ms, time } from "./fields.js";

/** How long each step of a worker's start took, in milliseconds. */
export const ColdStart = Type.Object({
  placeMs: ms("Until a host had the resources it needs, if it had to wait for them."),
  imageMs: ms("Until its image was ready."),
  createMs: ms("Until its container was created."),
  startMs: ms("Until its process was started."),
  readyMs: ms("Until it first asked for a job, or was first healthy."),
  totalMs: ms("All of that."),
  outputMs: ms("From its first take to its first output."),
});

/** A worker, with its timeline. */
export const Worker = Type.Object({
  id: Type.String(),
  endpointId: Type.String(),
  version: Type.Integer(),
  desiredStatus: Type.String({ description: "RUNNING or EXITED." }),
  state: Type.String({
    description:
      "initializing, idle, running, throttled, unhealthy, outdated, paused, closing (its last jobs), stopping or ended.",
  }),
  since: time(),
  why: Type.Optional(Type.String()),
  doing: Type.Optional(Type.String({ description: "The present step of its start, if that takes long." })),
  jobs: Type.Integer({ minimum: 0, description: "Number of jobs it holds." }),
  gpus: Type.Array(Type.Object({ id: Type.String(), name: Type.String() })),
  vcpuCount: Type.Optional(Type.Integer()),
  memoryInGb: Type.Optional(Type.Number()),
  privateIp: Type.Optional(Type.String({ description: "A container's own address, reachable only from its machine." })),
  portMappings: Type.Optional(
    Type.Record(Type.String(), Type.Integer(), {
      description: "The template's ports, each with the port of the machine at which it is published.",
    }),
  ),
  publicIp: Type.Optional(
    Type.String({ description: "The address at which the ports are published, if it is a single one." }),
  ),
  lastStartedAt: Type.Optional(time()),
  coldStart: ColdStart,
  timeline: Type.Array(Type.Object({ phase: Type.String(), at: time(), afterMs: Type.Integer({ minimum: 0 }) })),
  exit: Type.Optional(
    Type.Object({
      code: Type.Optional(Type.Integer()),
      signal: Type.Optional(Type.String()),
      cause: Type.Optional(Type.String({ description: "image, memory, gpu or start." })),
      note: Type.Optional(Type.String()),
    }),
  ),
});
export type Worker = Static<typeof Worker>;
