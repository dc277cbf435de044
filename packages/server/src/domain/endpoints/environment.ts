import { limits } from "../../limits/index.js";
import type { Gpu } from "../hosts/gpu.js";

export interface WorkerPlace {
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
  /** Whether there are GPUs that are others'. */
  readonly hostHasGpus: boolean;
  readonly volume: { readonly id: string; readonly path: string } | undefined;
  /** Undefined where an image brings its own. */
  readonly home: string | undefined;
  /** From the server's own environment, by allow-list. */
  readonly inherited: Readonly<Record<string, string>>;
  /** What its HTTP server is to listen on, where it is to have one. */
  readonly port?: number | undefined;
  /** The template's and the endpoint's own variables. */
  readonly own: Readonly<Record<string, string>>;
}

/** Of our own environment workers get these names and nothing else. */
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
 * A process sees the GPUs that are its own. A container's engine sees to that itself, but where its default runtime is NVIDIA's
 * that one goes by a variable, which images and templates set to `all`.
 */
function visibleGpus({ gpus, home, hostHasGpus }: WorkerPlace): Record<string, string> {
  if (!hostHasGpus) return {};
  const ids = gpus.map(({ id }) => id).join(",");
  return home === undefined ? { NVIDIA_VISIBLE_DEVICES: ids || "void" } : { CUDA_VISIBLE_DEVICES: ids };
}

/** The environment a worker is given (spec: What a worker is given). Own variables never override the protocol's. */
export function workerEnvironment(place: WorkerPlace): Record<string, string> {
  const query = `?gpu=${encodeURIComponent(place.gpus[0]?.name ?? "cpu")}&token=${place.secret}`;
  const calls = `${place.workerUrl}/v2/${place.endpointId}`;
  const overridable: Record<string, string> = {
    ...(place.home === undefined ? {} : { HOME: place.home }),
    RUNPOD_SKIP_AUTO_SYSTEM_CHECKS: "true",
    RUNPOD_DEBUG_LEVEL: "INFO",
    ...(place.gpus.length === 0 ? { RUNPOD_SKIP_GPU_CHECK: "true" } : {}),
    PYTHONUNBUFFERED: "1",
    ...(place.port === undefined ? {} : { PORT: String(place.port) }),
  };
  return {
    ...place.inherited,
    ...overridable,
    ...place.own,
    RUNPOD_POD_ID: place.workerId,
    RUNPOD_ENDPOINT_ID: place.endpointId,
    RUNPOD_AI_API_KEY: place.secret,
    RUNPOD_WEBHOOK_GET_JOB: `${calls}/job-take/$ID${query}`,
    RUNPOD_WEBHOOK_POST_OUTPUT: `${calls}/job-done/$RUNPOD_POD_ID/$ID${query}`,
    RUNPOD_WEBHOOK_POST_STREAM: `${calls}/job-stream/$RUNPOD_POD_ID/$ID${query}`,
    RUNPOD_WEBHOOK_PING: `${calls}/ping/$RUNPOD_POD_ID`,
    RUNPOD_PING_INTERVAL: String(limits.pingMs),
    RUNPOD_POD_HOSTNAME: place.hostname,
    RUNPOD_GPU_COUNT: String(place.gpus.length),
    ...visibleGpus(place),
    RUNPOD_DC_ID: place.location,
    RUNPOD_CPU_COUNT: String(place.cpuCount),
    RUNPOD_MEM_GB: String(place.memoryGb),
    ...(place.volume ? { RUNPOD_VOLUME_ID: place.volume.id, RUNPOD_VOLUME_PATH: place.volume.path } : {}),
  };
}
