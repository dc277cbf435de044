import { limits } from "../../limits/index.js";
import { type Gpu, untoldGpu } from "../hosts/gpu.js";

export interface WorkerFacts {
  readonly workerId: string;
  readonly endpointId: string;
  readonly secret: string;
  /** Where the worker reaches us, without a trailing slash. */
  readonly workerUrl: string;
  readonly hostname: string;
  readonly location: string;
  readonly cpuCount: number;
  readonly memoryGb: number;
  readonly gpus: readonly Pick<Gpu, "id" | "name">[];
  /** Whether the host has GPUs that this worker must not use. */
  readonly hostHasGpus: boolean;
  readonly volume: { readonly id: string; readonly path: string } | undefined;
  /** Undefined for an image, which brings its own. */
  readonly home: string | undefined;
  /** Taken from the server's own environment by an allow-list. */
  readonly inherited: Readonly<Record<string, string>>;
  /** The port that the worker's HTTP server must listen on, if it is to have one. */
  readonly port?: number | undefined;
  /** The template's and the endpoint's own variables. */
  readonly own: Readonly<Record<string, string>>;
}

/** The only variables of our own environment that workers inherit. */
export const inheritedNames = [
  "PATH",
  "LANG",
  "LC_ALL",
  "LC_CTYPE",
  "TZ",
  "TMPDIR",
  "LD_LIBRARY_PATH",
  "SSL_CERT_FILE",
];

/**
 * Restricts a process to its own GPUs. For containers the engine does so, but if NVIDIA's runtime is its default, that
 * runtime obeys a variable, which images and templates set to `all`.
 */
function visibleGpus({ gpus, home, hostHasGpus }: WorkerFacts): Record<string, string> {
  if (!hostHasGpus || gpus.some(({ id }) => id === untoldGpu)) return {};
  const ids = gpus.map(({ id }) => id).join(",");
  return home === undefined ? { NVIDIA_VISIBLE_DEVICES: ids || "void" } : { CUDA_VISIBLE_DEVICES: ids };
}

/** What a worker or pod is told about where it runs. */
const surroundings = (facts: WorkerFacts): Record<string, string> => ({
  RUNPOD_POD_HOSTNAME: facts.hostname,
  RUNPOD_GPU_COUNT: String(facts.gpus.length),
  ...visibleGpus(facts),
  RUNPOD_DC_ID: facts.location,
  RUNPOD_CPU_COUNT: String(facts.cpuCount),
  RUNPOD_MEM_GB: String(facts.memoryGb),
  ...(facts.volume ? { RUNPOD_VOLUME_ID: facts.volume.id, RUNPOD_VOLUME_PATH: facts.volume.path } : {}),
});

/**
 * The environment of a pod: nothing of the worker protocol, because it takes no jobs. `publicKey`: its user's SSH keys,
 * which images with an SSH server let in.
 */
export const podEnvironment = (facts: WorkerFacts, publicKey: string): Record<string, string> => ({
  ...facts.inherited,
  ...(facts.home === undefined ? {} : { HOME: facts.home }),
  ...(publicKey === "" ? {} : { PUBLIC_KEY: publicKey }),
  ...facts.own,
  RUNPOD_POD_ID: facts.endpointId,
  ...surroundings(facts),
});

/** The environment of a worker (spec: What a worker is given). User variables never override the protocol's. */
export function workerEnvironment(facts: WorkerFacts): Record<string, string> {
  const query = `?gpu=${encodeURIComponent(facts.gpus[0]?.name ?? "cpu")}&token=${facts.secret}`;
  const calls = `${facts.workerUrl}/v2/${facts.endpointId}`;
  const overridable: Record<string, string> = {
    ...(facts.home === undefined ? {} : { HOME: facts.home }),
    RUNPOD_SKIP_AUTO_SYSTEM_CHECKS: "true",
    RUNPOD_DEBUG_LEVEL: "INFO",
    ...(facts.gpus.length === 0 ? { RUNPOD_SKIP_GPU_CHECK: "true" } : {}),
    PYTHONUNBUFFERED: "1",
    ...(facts.port === undefined ? {} : { PORT: String(facts.port) }),
  };
  return {
    ...facts.inherited,
    ...overridable,
    ...facts.own,
    RUNPOD_POD_ID: facts.workerId,
    RUNPOD_ENDPOINT_ID: facts.endpointId,
    RUNPOD_AI_API_KEY: facts.secret,
    RUNPOD_WEBHOOK_GET_JOB: `${calls}/job-take/$ID${query}`,
    RUNPOD_WEBHOOK_POST_OUTPUT: `${calls}/job-done/$RUNPOD_POD_ID/$ID${query}`,
    RUNPOD_WEBHOOK_POST_STREAM: `${calls}/job-stream/$RUNPOD_POD_ID/$ID${query}`,
    RUNPOD_WEBHOOK_PING: `${calls}/ping/$RUNPOD_POD_ID`,
    RUNPOD_PING_INTERVAL: String(limits.pingMs),
    ...surroundings(facts),
  };
}
