import Type from "typebox";
import { ms, time } from "./fields.js";

/** How long each step of a worker's start took, in milliseconds. */
export const ColdStart = Type.Object({
  placeMs: ms("Until a host had what it needs, where it had to wait for that."),
  imageMs: ms("Until its image was there."),
  createMs: ms("Until its container was made."),
  startMs: ms("Until its process was started."),
  readyMs: ms("Until it first asked for a job, or first was healthy."),
  totalMs: ms("All of that."),
  outputMs: ms("From then to its first output."),
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
  doing: Type.Optional(Type.String({ description: "What its start is at, where that takes long." })),
  jobs: Type.Integer({ minimum: 0, description: "How many jobs it holds." }),
  gpus: Type.Array(Type.Object({ id: Type.String(), name: Type.String() })),
  vcpuCount: Type.Optional(Type.Integer()),
  memoryInGb: Type.Optional(Type.Number()),
  privateIp: Type.Optional(Type.String({ description: "A container's own address, reached from its machine alone." })),
  portMappings: Type.Optional(
    Type.Record(Type.String(), Type.Integer(), {
      description: "Its template's ports, and the port of its machine at which each is published.",
    }),
  ),
  publicIp: Type.Optional(Type.String({ description: "The address at which they are published, where it is one." })),
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
