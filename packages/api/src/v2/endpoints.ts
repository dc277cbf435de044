import Type, { type Static } from "typebox";
import { gpuTiers } from "../endpoints.js";
import { choice, list, text, visible } from "../fields.js";
import { CudaVersions, DataCenters } from "../machines.js";
import { Cpu, containerFields, imageOrTemplate } from "./container.js";

export const endpointTypes = ["QUEUE", "LOAD_BALANCER"] as const;

const name = Type.String({ minLength: 1, maxLength: 191, pattern: visible });
const Gpu = Type.Object({
  pools: Type.Array(choice(gpuTiers, "A GPU tier."), {
    minItems: 1,
    maxItems: 100,
    description: "GPU tiers, in order of preference.",
  }),
  excludedTypes: Type.Optional(list("GPU types of these tiers that are not wanted.")),
  count: Type.Optional(Type.Integer({ minimum: 1, maximum: 64 })),
  allowedCudaVersions: Type.Optional(CudaVersions),
});
const Workers = Type.Object({
  min: Type.Optional(Type.Integer({ minimum: 0, maximum: 10_000 })),
  max: Type.Optional(Type.Integer({ minimum: 0, maximum: 10_000 })),
  idleTimeout: Type.Optional(Type.Integer({ minimum: 1, maximum: 3_600, description: "Seconds." })),
});
const Scaling = Type.Union(
  [
    Type.Object({ type: Type.Literal("QUEUE_DELAY"), queueDelay: Type.Integer({ minimum: 1, maximum: 1_000_000 }) }),
    Type.Object({
      type: Type.Literal("REQUEST_COUNT"),
      requestCount: Type.Integer({ minimum: 1, maximum: 1_000_000 }),
    }),
  ],
  { description: "How the number of workers is scaled. Endpoints of both types may use either." },
);
const FlashBoot = Type.Union(
  [choice(["OFF", "FLASHBOOT", "PRIORITY_FLASHBOOT"] as const, "How workers are kept warm."), Type.Boolean()],
  {
    title: "OFF, FLASHBOOT, PRIORITY_FLASHBOOT, true or false",
  },
);

const settings = {
  ...containerFields,
  templateId: Type.Optional(
    text(
      "A template to start workers from. Container fields sent beside it change a copy, which is the endpoint's own.",
      {
        minLength: 1,
      },
    ),
  ),
  gpu: Type.Optional(Gpu),
  cpu: Type.Optional(Cpu),
  workers: Type.Optional(Workers),
  dataCenterIds: Type.Optional(DataCenters),
  networkVolumes: Type.Optional(list("Network volumes to mount, by id.")),
  timeout: Type.Optional(
    Type.Integer({ minimum: 5_000, maximum: 604_800_000, description: "Milliseconds that a request may run." }),
  ),
  flashboot: Type.Optional(FlashBoot),
};

/** Body of `POST /v2/serverless`. */
export const EndpointCreate = Type.Object(
  { ...settings, name, type: choice(endpointTypes, "QUEUE or LOAD_BALANCER."), scaling: Scaling },
  imageOrTemplate,
);
export type EndpointCreate = Static<typeof EndpointCreate>;

/** Body of `PATCH /v2/serverless/{id}`: only the fields sent change. */
export const EndpointUpdate = Type.Object({ ...settings, name: Type.Optional(name), scaling: Type.Optional(Scaling) });
export type EndpointUpdate = Static<typeof EndpointUpdate>;

/** An endpoint as REST v2 shows it. */
export const Endpoint = Type.Object({
  ...containerFields,
  id: Type.String(),
  name: Type.String(),
  type: choice(endpointTypes, "QUEUE or LOAD_BALANCER."),
  requestUrls: Type.Record(Type.String(), Type.String(), {
    description: "Where it takes requests; {job_id} stands for a job's id.",
  }),
  gpu: Type.Union([
    Type.Object({
      pools: Type.Array(Type.String()),
      excludedTypes: Type.Array(Type.String()),
      count: Type.Integer(),
      allowedCudaVersions: Type.Optional(Type.Array(Type.String())),
    }),
    Type.Null(),
  ]),
  cpu: Type.Union([Type.Object({ id: Type.String(), vcpuCount: Type.Integer(), memory: Type.Integer() }), Type.Null()]),
  workers: Type.Object({ min: Type.Integer(), max: Type.Integer(), idleTimeout: Type.Integer() }),
  scaling: Scaling,
  dataCenterIds: Type.Array(Type.String()),
  networkVolumes: Type.Array(Type.String()),
  timeout: Type.Integer(),
  flashboot: choice(["OFF", "FLASHBOOT", "PRIORITY_FLASHBOOT"] as const, "How workers are kept warm."),
  createdAt: Type.String({ format: "date-time" }),
});
export type Endpoint = Static<typeof Endpoint>;

/** Reply of `GET /v2/serverless`. */
export const Endpoints = Type.Object({ endpoints: Type.Array(Endpoint) });

export const workerStatuses = ["RUNNING", "IDLE", "INITIALIZING", "THROTTLED", "UNHEALTHY"] as const;
export type WorkerStatus = (typeof workerStatuses)[number];

const count = () => Type.Integer({ minimum: 0 });
/** Reply of `GET /v2/serverless/{id}/workers`. */
export const WorkerList = Type.Object({
  workers: Type.Array(
    Type.Object({
      id: Type.String(),
      status: choice(workerStatuses, "Its state."),
      isStale: Type.Boolean({ description: "Whether it is of an earlier version." }),
      version: Type.Integer(),
      gpuCount: count(),
      image: Type.Union([Type.String(), Type.Null()]),
      uptimeSeconds: Type.Union([count(), Type.Null()]),
      gpuTypeId: Type.Union([Type.String(), Type.Null()]),
      dataCenterId: Type.Union([Type.String(), Type.Null()]),
      startedAt: Type.Union([Type.String({ format: "date-time" }), Type.Null()]),
    }),
  ),
  summary: Type.Object({
    running: count(),
    idle: count(),
    initializing: count(),
    throttled: count(),
    unhealthy: count(),
    total: count(),
  }),
  endpointVersion: Type.Integer(),
});

/** Reply of `GET /v2/serverless/{id}/releases`. */
export const Releases = Type.Object({
  endpointVersion: Type.Integer(),
  rollout: Type.Object({
    inProgress: Type.Boolean(),
    workersOnLatest: count(),
    workersTotal: count(),
    percentOnLatest: Type.Integer({ minimum: 0, maximum: 100 }),
  }),
  releases: Type.Array(
    Type.Object({
      id: Type.String(),
      version: Type.Integer(),
      source: Type.Literal("MANUAL"),
      buildId: Type.Null(),
      createdByUserId: Type.Union([Type.String(), Type.Null()]),
      workerCount: count(),
      createdAt: Type.String({ format: "date-time" }),
      diff: Type.Array(Type.Object({ field: Type.String(), old: Type.Unknown(), new: Type.Unknown() })),
    }),
  ),
});
