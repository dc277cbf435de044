import type { TestServer } from "../harness.js";
import type { Said } from "./stock.js";

/** A type of the program: it fails on a member of another type; absent and null members are its zero values. */
export type GoType =
  | "string"
  | "int"
  | "number"
  | "bool"
  | "any"
  | "map"
  | readonly [GoType]
  | { readonly [field: string]: GoType };

const isOf: Readonly<Record<string, (value: unknown) => boolean>> = {
  string: (value) => typeof value === "string",
  int: (value) => Number.isInteger(value),
  number: (value) => typeof value === "number",
  bool: (value) => typeof value === "boolean",
  any: () => true,
  map: (value) =>
    typeof value === "object" &&
    !Array.isArray(value) &&
    Object.values(value as object).every((each) => typeof each === "string"),
};

/** Returns the value if it fits the type, and fails with the path of what does not. */
export function decoded(value: Said, type: GoType, path = "reply"): Said {
  if (value === null || value === undefined) return value;
  if (typeof type === "string") {
    if (!isOf[type]?.(value)) throw new Error(`${path} is ${JSON.stringify(value)}, which is no ${type}`);
  } else if (Array.isArray(type)) {
    if (!Array.isArray(value)) throw new Error(`${path} is no list: ${JSON.stringify(value).slice(0, 100)}`);
    for (const [n, each] of value.entries()) decoded(each, type[0] as GoType, `${path}[${n}]`);
  } else {
    if (typeof value !== "object" || Array.isArray(value)) throw new Error(`${path} is no object`);
    for (const [field, of] of Object.entries(type)) decoded(value[field], of as GoType, `${path}.${field}`);
  }
  return value;
}

export const templateType: GoType = {
  ...{ id: "string", name: "string", imageName: "string", isServerless: "bool", isPublic: "bool", readme: "string" },
  ...{ containerDiskInGb: "int", volumeInGb: "int", volumeMountPath: "string", env: "map", ports: ["string"] },
  ...{ dockerEntrypoint: ["string"], dockerStartCmd: ["string"], containerRegistryAuthId: "string" },
};

export const endpointType: GoType = {
  ...{
    id: "string",
    name: "string",
    templateId: "string",
    gpuIds: "string",
    locations: "string",
    computeType: "string",
  },
  ...{ networkVolumeId: "string", scalerType: "string", minCudaVersion: "string", flashBootType: "string" },
  ...{ idleTimeout: "int", scalerValue: "int", workersMin: "int", workersMax: "int", gpuCount: "int" },
  ...{ executionTimeoutMs: "int", flashboot: "bool", instanceIds: ["string"], modelReferences: ["string"] },
  ...{ networkVolumeIds: ["any"], template: "any", workers: ["any"] },
};

export const podType: GoType = {
  ...{ id: "string", name: "string", imageName: "string", desiredStatus: "string", lastStatusChange: "string" },
  ...{ ports: ["string"], env: "map", memoryInGb: "int", vcpuCount: "int", costPerHr: "number", gpuCount: "int" },
  ...{ containerDiskInGb: "int", volumeInGb: "int", volumeMountPath: "string", createdAt: "any" },
};

export const billType: GoType = [
  {
    ...{ time: "string", amount: "number", timeBilledMs: "int", diskSpaceBilledGb: "int" },
    ...{ podId: "string", endpointId: "string", gpuTypeId: "string" },
  },
];

/** Sends what the program sends: every request is labelled as JSON, whether it has a body or not. */
export function runpodctl(server: TestServer) {
  const headers = {
    authorization: `Bearer ${server.key}`,
    "content-type": "application/json",
    "user-agent": "runpod-cli/2.7.2",
  };
  return {
    async rest(method: string, path: string, body?: object): Promise<Said> {
      const reply = await fetch(`${server.url}/sdk/v1${path}`, {
        method,
        headers,
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      const text = await reply.text();
      if (!reply.ok) throw new Error(text);
      return method === "DELETE" ? undefined : JSON.parse(text);
    },
    async graphql(query: string, variables: object = {}): Promise<Said> {
      const reply = await fetch(`${server.url}/sdk/graphql`, {
        method: "POST",
        headers,
        body: JSON.stringify({ query, variables }),
      });
      const { data, errors } = (await reply.json()) as Said;
      if (reply.status !== 200 || errors?.length > 0) throw new Error(errors?.[0]?.message ?? `status ${reply.status}`);
      return data;
    },
  };
}
