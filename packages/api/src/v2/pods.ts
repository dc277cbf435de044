import Type, { type Static } from "typebox";
import { choice, text, visible } from "../fields.js";
import { CudaVersions, DataCenters } from "../machines.js";
import { cloudTypes } from "../pods.js";
import { Cpu, containerFields, imageOrTemplate } from "./container.js";

export const podStatuses = ["PROVISIONING", "STARTING", "RUNNING", "EXITED", "ERROR", "TERMINATED"] as const;
export const podActions = ["start", "stop", "restart", "terminate"] as const;

const name = Type.String({ minLength: 1, maxLength: 191, pattern: visible });
const path = text("Where it is mounted: an absolute path, not below /proc, /sys or /dev.", { minLength: 1 });
const Mounts = Type.Object(
  {
    persistent: Type.Optional(
      Type.Object(
        { size: Type.Integer({ minimum: 1, maximum: 100_000, description: "GB; it can only grow." }), path },
        { additionalProperties: false, description: "A volume of the pod's own on its host." },
      ),
    ),
    network: Type.Optional(
      Type.Array(Type.Object({ volumeId: text("The network volume."), path }, { additionalProperties: false }), {
        maxItems: 1,
        description: "A network volume instead of one of its own.",
      }),
    ),
  },
  { additionalProperties: false, description: "Either persistent or network; fixed when the pod is created." },
);
const Gpu = Type.Object({
  id: text("The GPU type.", { minLength: 1, maxLength: 1_000 }),
  count: Type.Optional(Type.Integer({ minimum: 1, maximum: 64 })),
  allowedCudaVersions: Type.Optional(CudaVersions),
});
const cloud = choice(cloudTypes, "Kept and shown; it changes nothing here.");

/** Body of `POST /v2/pods`. */
export const PodCreate = Type.Object(
  {
    ...containerFields,
    name,
    templateId: Type.Optional(
      text("A template whose settings are copied; fields that are sent replace its own.", { minLength: 1 }),
    ),
    mounts: Type.Optional(Mounts),
    gpu: Type.Optional(Gpu),
    cpu: Type.Optional(Cpu),
    cloud: Type.Optional(cloud),
    dataCenterIds: Type.Optional(DataCenters),
    globalNetworking: Type.Optional(Type.Boolean({ description: "Kept and shown; it changes nothing here." })),
  },
  imageOrTemplate,
);
export type PodCreate = Static<typeof PodCreate>;

/** Body of `PATCH /v2/pods/{id}`: only the fields sent change. */
export const PodUpdate = Type.Object({
  ...containerFields,
  name: Type.Optional(name),
  mounts: Type.Optional(Mounts),
  locked: Type.Optional(Type.Boolean({ description: "Whether it cannot be stopped, reset or deleted." })),
  globalNetworking: Type.Optional(Type.Boolean({ description: "Kept and shown; it changes nothing here." })),
});
export type PodUpdate = Static<typeof PodUpdate>;

/** Body of `POST /v2/pods/{id}/action`. */
export const PodAction = Type.Object(
  { action: choice(podActions, "What is to be done with it.") },
  { additionalProperties: false },
);
export type PodAction = Static<typeof PodAction>;

const time = Type.String({ format: "date-time" });
const count = () => Type.Integer({ minimum: 0 });
const share = Type.Optional(Type.Object({ util: count() }));

/** A pod as REST v2 shows it. */
export const Pod = Type.Object({
  ...containerFields,
  id: Type.String(),
  name: Type.String(),
  status: choice(podStatuses, "What it does now."),
  statusDetail: Type.Optional(Type.String({ description: "Why it does not run." })),
  actions: Type.Array(choice(podActions, "An action."), { description: "What can be done with it now." }),
  mounts: Mounts,
  gpu: Type.Optional(
    Type.Object({
      id: Type.String(),
      count: count(),
      allowedCudaVersions: Type.Optional(Type.Array(Type.String())),
    }),
  ),
  cpu: Type.Optional(Type.Object({ id: Type.String(), vcpuCount: count(), memory: count() })),
  cloud,
  dataCenterId: Type.Union([Type.String(), Type.Null()]),
  template: Type.Union([Type.String(), Type.Null()]),
  cost: Type.Number({ minimum: 0, description: "What an hour of it costs now." }),
  locked: Type.Boolean(),
  globalNetworking: Type.Object({ enabled: Type.Boolean() }),
  runtime: Type.Union([
    Type.Object({
      uptime: count(),
      gpus: Type.Optional(Type.Array(Type.Object({ util: count(), memoryUtil: count() }))),
      cpu: share,
      memory: share,
      ports: Type.Array(
        Type.Object({
          private: count(),
          public: Type.Union([count(), Type.Null()]),
          type: Type.String(),
          ip: Type.Union([Type.String(), Type.Null()]),
        }),
      ),
    }),
    Type.Null(),
  ]),
  createdAt: time,
  startedAt: Type.Union([time, Type.Null()]),
});
export type Pod = Static<typeof Pod>;

/** Reply of `GET /v2/pods`. */
export const Pods = Type.Object({ pods: Type.Array(Pod) });
