/** What the generator reads of a JSON schema. */
export interface Schema {
  readonly type?: string;
  readonly format?: string;
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly Schema[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly patternProperties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
  readonly minimum?: number;
}

const image = "registry.example/image-to-text:1.4";
const at = "2026-05-01T12:00:00.000Z";

/**
 * Values of fields, by their names; a name with that of the field around it goes first. A field whose value does not fit its
 * schema gets a plain one.
 */
const values: Readonly<Record<string, unknown>> = {
  id: "k3v9x2m7q1w8rt",
  "cpu.id": "cpu3g",
  "cpus.id": "cpu3g",
  "gpu.id": "NVIDIA L4",
  "gpus.id": "NVIDIA L4",
  "dataCenters.id": "EU-RO-1",
  keys: ["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIExampleExampleExampleExampleExampleExampleExamp laptop"],
  name: "image-to-text",
  userId: "user_u8h2n5c1x7p4zd",
  consumerUserId: "user_u8h2n5c1x7p4zd",
  createdByUserId: "user_u8h2n5c1x7p4zd",
  endpointId: "k3v9x2m7q1w8rt",
  serverlessId: "k3v9x2m7q1w8rt",
  templateId: "jx1k2m3n4p5q6r",
  networkVolumeId: "v4b8n2m6c1x9zq",
  networkVolumeIds: ["v4b8n2m6c1x9zq"],
  networkVolumes: ["v4b8n2m6c1x9zq"],
  volumeId: "v4b8n2m6c1x9zq",
  podId: "p7r2t9w4y1u6im",
  workerId: "w5e8r1t4y7u2io",
  jobId: "01890a5d-ac96-774b-bcce-b302099a8057-u1",
  keyId: "a9s2d5f8g1h4jk",
  containerRegistryAuthId: "r6y3u8i1o4p7as",
  registry: "r6y3u8i1o4p7as",
  machineId: "host-1",
  imageName: image,
  image: image,
  args: "python -u /handler.py",
  env: { MODEL: "small" },
  ports: ["8888/http", "22/tcp"],
  dockerEntrypoint: [],
  dockerStartCmd: ["python", "-u", "/handler.py"],
  volumeMountPath: "/runpod-volume",
  path: "/runpod-volume",
  readme: "Describes images in a sentence.",
  description: "Downloads models.",
  gpuTypeIds: ["NVIDIA L4"],
  gpuTypeId: "NVIDIA L4",
  gpuDisplayName: "L4",
  displayName: "L4",
  manufacturer: "NVIDIA",
  gpuIds: "AMPERE_24",
  pools: ["AMPERE_24"],
  excludedTypes: [],
  instanceIds: [],
  cpuFlavorIds: ["cpu3g"],
  cpuFlavorId: "cpu3g",
  allowedCudaVersions: ["12.8"],
  minCudaVersion: "12.8",
  dataCenterIds: ["EU-RO-1"],
  dataCenterId: "EU-RO-1",
  dataCenter: "EU-RO-1",
  location: "EU-RO-1",
  locations: "EU-RO-1",
  place: "cluster",
  podClass: "spot",
  privateIp: "172.17.0.4",
  publicIp: "192.0.2.10",
  ip: "192.0.2.10",
  address: "192.0.2.20",
  portMappings: { "22": 41_022 },
  executionTimeoutMs: 600_000,
  timeout: 300_000,
  idleTimeout: 5,
  workersMax: 3,
  workersMin: 0,
  scalerValue: 4,
  size: 100,
  containerDiskInGb: 20,
  disk: 20,
  volumeInGb: 20,
  memoryInGb: 24,
  vcpuCount: 2,
  delayTime: 31,
  executionTime: 1_268,
  retries: 0,
  exitCode: 0,
  signal: "SIGTERM",
  why: "it was idle for 5 s",
  doing: "downloads the image",
  cause: "idle",
  note: "it ended with exit code 0",
  reason: "idle for 5 s",
  outcome: "stop 1",
  action: "endpoint.update",
  resource: "k3v9x2m7q1w8rt",
  prefix: "mr_a9s",
  keyPrefix: "mr_a9s",
  oldPrefix: "mr_q3w",
  key: "mr_a9s2d5f8g1h4jk7l0z3x6c9v2b5n8m1q4w7e",
  webhookSecret: "whsec_bWlsbHJhY2UgZXhhbXBsZSBzZWNyZXQ=",
  secret: "whsec_bWlsbHJhY2UgZXhhbXBsZSBzZWNyZXQ=",
  requestId: "2b3df08e-9f90-479b-8814-e037101b2a01",
  nextCursor: "6f1d0c4a9be27735f02c81d4a3b95e68",
  url: "https://shop.example/webhooks/millrace",
  origin: "https://shop.example",
  error: "the receiver answered 503",
  lastError: "the receiver answered 503",
  reply: "Service Unavailable",
  output: { text: "A mill by a river." },
  text: "loading the model",
  level: "info",
  message: "loading the model",
  waitDetail: "starts a worker: 1 of 3",
  statusDetail: "waits for a GPU: all are in use",
  lastStatusChange: "started by its user at 2026-05-01T12:00:00.000Z",
  at,
};

const line = { at, workerId: "w5e8r1t4y7u2io", stream: "stdout", text: "loading the model" };
/** Bodies that are not one JSON value, by media type. */
const texts: Readonly<Record<string, unknown>> = {
  "text/plain": `${line.at} ${line.workerId} ${line.stream} ${line.text}\n`,
  "application/x-ndjson": line, // as its schema, which describes one of its lines
  "text/event-stream": `event: line\nid: 1777636800000000-${line.workerId}\ndata: ${JSON.stringify(line)}\n\n`,
};

/** An example of a reply of this media type and schema. */
export const replyExample = (type: string, schema: Schema): unknown => texts[type] ?? exampleOf(schema, "");

function exampleOf(schema: Schema, name: string, parent = ""): unknown {
  const known = [`${parent}.${name}`, name].find((each) => Object.hasOwn(values, each) && fits(values[each], schema));
  if (known !== undefined) return values[known];
  if (schema.const !== undefined) return schema.const;
  if (schema.enum) return schema.enum[0];
  if (schema.anyOf) return exampleOf(schema.anyOf.find(({ type }) => type !== "null") ?? {}, name, parent);
  return made(schema, name);
}

function made({ type, format, properties, patternProperties, items, minimum = 0 }: Schema, name: string): unknown {
  if (type === "object") {
    const fields = Object.entries(properties ?? {}).map(([key, each]) => [key, exampleOf(each, key, name)] as const);
    const value = Object.values(patternProperties ?? {})[0];
    return Object.fromEntries([...fields, ...(value ? [["example", exampleOf(value, "")] as const] : [])]);
  }
  if (type === "array") return items ? [exampleOf(items, name)] : [];
  if (type === "boolean") return false;
  if (type === "integer" || type === "number") return Math.max(minimum, 1);
  if (type === "null") return null;
  return format === "date-time" ? at : name || "text";
}

/** Whether a value has a schema's outer form. */
function fits(value: unknown, schema: Schema): boolean {
  if (schema.anyOf) return schema.anyOf.some((each) => fits(value, each));
  if (schema.const !== undefined) return schema.const === value;
  if (schema.enum) return schema.enum.includes(value);
  switch (schema.type) {
    case undefined:
      return true;
    case "array":
      return Array.isArray(value) && value.every((each) => fits(each, schema.items ?? {}));
    case "integer":
      return Number.isInteger(value);
    case "object":
      return typeof value === "object" && value !== null && !Array.isArray(value) && !schema.properties;
    default:
      return typeof value === schema.type && (schema.format !== "date-time" || value === at);
  }
}
