import type { Differences } from "./walk.js";

// What the walks over the public descriptions know to differ here on purpose; the page of compatibility lists it.

/** Of one public description. */
interface Of {
  /** Fields that replies leave out or show as null where they have no value, by kind of resource. */
  readonly absent: Readonly<Record<string, Differences>>;
  /** Defaults that a reply does not show, as `kind.field`. */
  readonly defaultsNotShown: Differences;
  /** Words of a query that are refused, as `path?name=word`. */
  readonly refusedWords: Differences;
  /** Operations that the walk leaves out, or that are refused. */
  readonly operations: Differences;
}

export const v1Differences: Of = {
  absent: {
    endpoints: {
      allowedCudaVersions: "none is chosen",
      minCudaVersion: "none is chosen",
      networkVolumeId: "none is mounted",
    },
    templates: { containerRegistryAuthId: "none is needed" },
    pods: { templateId: "it was made without one", gpu: "it has none yet" },
  },
  defaultsNotShown: {
    "pods.computeType": "a pod shows what it has instead",
    "pods.globalNetworking": "it is in REST v2's replies",
    "pods.vcpuCount": "it is that of CPU pods",
  },
  refusedWords: { "/billing/endpoints?grouping=podId": "workers are not billed one by one" },
  operations: {
    "GET /openapi.json, GET /docs": "they describe this service, which has more than the public description",
  },
};

export const v2Differences: Of = {
  absent: {
    serverless: { registry: "none is needed", cpu: "it runs on GPUs" },
    templates: { registry: "none is needed" },
    pods: {
      registry: "none is needed",
      gpu: "it has none yet",
      dataCenterId: "it has no place yet",
      template: "it was made without one",
      runtime: "it does not run",
      startedAt: "it has not started",
    },
    catalog: { pool: "not every GPU type is in a pool" },
  },
  defaultsNotShown: {},
  refusedWords: {},
  operations: {
    "POST and DELETE /registries/delegations":
      "delegations exist only at the hosted service: making one is refused in words, and the list is empty",
    "GET /clusters, GET /global-volumes":
      "they exist only at the hosted service: the lists are empty, and making one is refused in words",
  },
};
