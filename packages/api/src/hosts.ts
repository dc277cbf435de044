import Type, { type Static } from "typebox";
import { time } from "./fields.js";

const count = (description: string) => Type.Integer({ minimum: 0, description });

/** A host: a machine that runs workers. */
export const HostView = Type.Object({
  id: Type.String(),
  isAlive: Type.Boolean({ description: "Whether its server has reported within the last seconds." }),
  seenAt: Type.Optional(time("When its server last reported; absent for the server that answers.")),
  location: Type.Optional(Type.String({ description: "Its country or data center; absent if it has none." })),
  cpuCount: count("Virtual processors."),
  memoryInGb: Type.Number({ minimum: 0 }),
  workers: count("Workers there: of all users for an admin, otherwise your own."),
  gpusEnforced: Type.Boolean({ description: "Whether a worker that needs a GPU waits until it gets one." }),
  gpuProblem: Type.Optional(Type.String({ description: "What is wrong with its GPUs, or why it has none." })),
  gpus: Type.Array(
    Type.Object({
      id: Type.String(),
      name: Type.String(),
      memoryInGb: Type.Number({ minimum: 0, description: "0 if it shares the machine's." }),
      isHeld: Type.Boolean({ description: "Whether a worker or pod has it." }),
      endpointId: Type.Optional(Type.String({ description: "The endpoint or pod that has it, if you may see it." })),
      workerId: Type.Optional(Type.String()),
    }),
  ),
  cluster: Type.Optional(
    Type.Object(
      {
        name: Type.String({ description: "Its name: endpoints whose place is cluster/ and this name run there." }),
        gpuTypes: Type.Optional(
          Type.Array(
            Type.Object({
              name: Type.String(),
              memoryInGb: Type.Number({ minimum: 0 }),
              count: count("GPUs of this type on nodes that take pods."),
              held: count("How many of them workers of this service hold."),
            }),
            { description: "Absent if the service may not list the cluster's nodes." },
          ),
        ),
      },
      { description: "Present if the host is a Kubernetes cluster, which finds room for its workers itself." },
    ),
  ),
});
export type HostView = Static<typeof HostView>;
