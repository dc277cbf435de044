import { type Operation, Word } from "./operation.js";
import { each, int, list, listOrNone, nothing, nullOnly, object, orNull, text, texts } from "./shape.js";
import { template, variable } from "./template-operations.js";

const volumeRef = object(texts("networkVolumeId dataCenterId"));
const scaling = each("idleTimeout scalerValue workersMin workersMax gpuCount", int);

/** What all clients together select of an endpoint that they saved. */
const saved = object({
  ...texts("id name templateId userId type computeType gpuIds scalerType flashBootType"),
  ...scaling,
  ...each("version workersStandby executionTimeoutMs", int),
  ...each("aiKey locations networkVolumeId allowedCudaVersions minCudaVersion", orNull(text)),
  ...each("workersPFBTarget flashEnvironmentId activeBuildid idePodId", nullOnly),
  ...each("instanceIds modelReferences compliance", listOrNone(text)),
  networkVolumeIds: listOrNone(volumeRef),
});

const input = "EndpointInput!";
/** Endpoints. */
export const endpointOperations: readonly Operation[] = [
  {
    by: "Python: with a template and one CUDA version",
    root: "mutation",
    field: "saveEndpoint",
    isLiteral: true,
    args: (made) => ({
      input: [
        input,
        {
          flashBootType: new Word("FLASHBOOT"),
          name: "python",
          templateId: made.template,
          gpuIds: "AMPERE_16",
          networkVolumeId: "",
          locations: "",
          idleTimeout: 5,
          scalerType: "QUEUE_DELAY",
          scalerValue: 4,
          workersMin: 0,
          workersMax: 3,
          allowedCudaVersions: "12.4",
          gpuCount: 1,
        },
      ],
    }),
    holds: () => ({ gpuIds: "AMPERE_16", flashBootType: "FLASHBOOT", allowedCudaVersions: "12.4", workersMax: 3 }),
    gives: object({
      ...texts("id name templateId gpuIds scalerType allowedCudaVersions flashBootType"),
      ...scaling,
      locations: orNull(text),
      networkVolumeId: nullOnly,
    }),
  },
  {
    by: "runpodctl: on GPUs, with a template of its own",
    root: "mutation",
    field: "saveEndpoint",
    args: (made) => ({
      input: [
        input,
        {
          name: "ctl",
          template: { ...template, name: "ctl" },
          hubReleaseId: "release",
          gpuIds: "AMPERE_24,-NVIDIA L4",
          gpuCount: 2,
          workersMax: 2,
          locations: "EU-RO-1,US",
          networkVolumeId: made.volume,
          networkVolumeIds: [{ networkVolumeId: made.volume }],
          idleTimeout: 7,
          scalerType: "REQUEST_COUNT",
          scalerValue: 3,
          executionTimeoutMs: 60_000,
          minCudaVersion: "12.4",
          flashBootType: "FLASHBOOT",
          modelReferences: ["hub.example/model"],
        },
      ],
    }),
    holds: (made) => ({
      ...{ gpuIds: "AMPERE_24", gpuCount: 2, locations: "EU-RO-1,US", networkVolumeId: made.volume, idleTimeout: 7 },
      ...{ scalerType: "REQUEST_COUNT", scalerValue: 3, executionTimeoutMs: 60_000, minCudaVersion: "12.4" },
    }),
    gives: saved,
  },
  {
    by: "runpodctl: on CPUs, without gpuIds",
    root: "mutation",
    field: "saveEndpoint",
    args: (made) => ({
      input: [input, { name: "cpu", templateId: made.template, instanceIds: ["cpu3g-4-16"], workersMax: 1 }],
    }),
    holds: () => ({ computeType: "CPU", instanceIds: ["cpu3g-4-16"] }),
    gives: saved,
  },
  {
    by: "runpodctl: all of it sent back, with models",
    root: "mutation",
    field: "saveEndpoint",
    args: (made) => ({
      input: [
        input,
        {
          id: made.endpoint,
          name: "echoed",
          templateId: made.template,
          gpuIds: "",
          gpuCount: 1,
          instanceIds: null,
          flashBootType: "",
          minCudaVersion: "",
          locations: "",
          networkVolumeId: made.volume,
          idleTimeout: 5,
          scalerType: "QUEUE_DELAY",
          scalerValue: 4,
          workersMin: 1,
          workersMax: 1,
          executionTimeoutMs: 600_000,
          modelReferences: ["hub.example/model"],
        },
      ],
    }),
    holds: (made) => ({ id: made.endpoint, name: "echoed", version: 1, networkVolumeId: made.volume }),
    gives: saved,
  },
  {
    by: "MCP: from a hub listing",
    root: "mutation",
    field: "saveEndpoint",
    args: () => ({
      input: [
        input,
        {
          name: "hub",
          type: "QB",
          gpuIds: "ADA_24",
          locations: null,
          networkVolumeIds: null,
          compliance: [],
          workersPFBTarget: 0,
          allowedCudaVersions: "12.4,12.8",
          template: { ...template, containerRegistryAuthId: "", startScript: "", ports: "" },
        },
      ],
    }),
    holds: () => ({ type: "QB", allowedCudaVersions: "12.4,12.8" }),
    gives: saved,
  },
  {
    by: "flash: load-balancing, with GPU types beside tiers",
    root: "mutation",
    field: "saveEndpoint",
    args: (made) => ({
      input: [
        input,
        {
          name: "flash",
          type: "LB",
          gpuIds: "AMPERE_24,-NVIDIA L4,NVIDIA L40S",
          templateId: made.template,
          flashEnvironmentId: "environment",
          workersMin: 0,
          workersMax: 1,
        },
      ],
    }),
    holds: () => ({ type: "LB", gpuIds: "AMPERE_24,ADA_48_PRO" }),
    gives: saved,
  },
  {
    by: "others: all that they were shown, sent back",
    root: "mutation",
    field: "saveEndpoint",
    args: (made) => ({
      input: [
        input,
        {
          id: made.endpoint,
          name: "shown",
          computeType: "GPU",
          env: [{ key: "A", value: "1" }],
          networkVolumeIds: [{ networkVolumeId: made.volume, dataCenterId: "EU-RO-1" }],
          workersPFBTarget: 0,
          hubRelease: "",
          repo: "",
          aiKey: "",
          userId: "someone",
          activeBuildid: "",
          createdAt: "2026-11-01T00:00:00.000Z",
        },
      ],
    }),
    holds: (made) => ({ id: made.endpoint, name: "shown", version: 1, networkVolumeId: made.volume }),
    gives: saved,
  },
  {
    by: "others: with every field of a template, and volumes in objects",
    root: "mutation",
    field: "saveEndpoint",
    args: (made) => ({
      input: [
        input,
        {
          name: "every",
          gpuIds: "ADA_24",
          volumes: [{ volumeId: made.volume, volumeType: "network", mountPath: "/runpod-volume" }],
          template: {
            ...template,
            name: "every",
            readme: "read",
            volumeInGb: 0,
            volumeMountPath: "/workspace",
            advancedStart: false,
            config: {},
          },
        },
      ],
    }),
    holds: (made) => ({ networkVolumeIds: [{ networkVolumeId: made.volume, dataCenterId: "EU-RO-1" }] }),
    gives: saved,
  },
  {
    by: "contract, flash",
    root: "mutation",
    field: "deleteEndpoint",
    args: (made) => ({ id: ["String!", made.spareEndpoint] }),
    gives: nullOnly,
  },
  ...[true, false].map(
    (isLiteral): Operation => ({
      by: isLiteral ? "Python" : "runpodctl",
      root: "mutation",
      field: "updateEndpointTemplate",
      isLiteral,
      args: (made) => ({
        input: ["UpdateEndpointTemplateInput", { endpointId: made.endpoint, templateId: made.template }],
      }),
      gives: object(texts("id templateId")),
    }),
  ),
  {
    by: "contract, Python",
    root: "query",
    field: "myself",
    isLiteral: true,
    gives: object({
      endpoints: list(
        object({
          ...texts("gpuIds id name scalerType templateId type userId createdAt"),
          ...scaling,
          ...each("version workersStandby", int),
          ...each("aiKey locations networkVolumeId", orNull(text)),
          env: listOrNone(variable),
          networkVolume: orNull(object(texts("id dataCenterId"))),
          pods: listOrNone(object(texts("desiredStatus"))),
        }),
      ),
      serverlessDiscount: nothing(object(texts("discountFactor type expirationDate"))),
    }),
  },
  {
    by: "flash: whether an endpoint exists",
    root: "query",
    field: "myself",
    within: (made) => ({ id: ["String!", made.endpoint] }),
    gives: object({
      "endpoint(id: $id)": object({
        ...texts("id name"),
        env: list(variable),
        networkVolume: object(texts("id dataCenterId")),
        networkVolumeIds: list(volumeRef),
        template: object(texts("id imageName")),
        pods: list(object(texts("id desiredStatus"))),
      }),
    }),
  },
  {
    by: "flash: an endpoint that does not exist",
    root: "query",
    field: "myself",
    within: () => ({ id: ["String!", "doesnotexist00"] }),
    gives: object({ "endpoint(id: $id)": nothing(object(texts("id"))) }),
  },
];
