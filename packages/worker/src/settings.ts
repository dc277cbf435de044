import { limits } from "./limits.js";

/** The addresses of a worker's server, read once from the environment. */
export interface Settings {
  readonly workerId: string;
  readonly apiKey: string;
  readonly pingIntervalMs: number;
  /** Has a query already, so that more can be appended with `&`. */
  readonly takeUrl: string;
  readonly takeBatchUrl: string;
  readonly stopUrl: string;
  /** Undefined if the URL for results does not have the protocol's shape: then each result is sent alone. */
  readonly doneBatchUrl: string | undefined;
  readonly pingUrl: string | undefined;
  doneUrl(jobId: string, isStream: boolean): string;
  streamUrl(jobId: string): string;
}

type Environment = Readonly<Record<string, string | undefined>>;

const needed = ["RUNPOD_WEBHOOK_GET_JOB", "RUNPOD_WEBHOOK_POST_OUTPUT"] as const;

/** The names of the variables that a worker needs and that are not set. */
export function missingVariables(env: Environment): string[] {
  return needed.filter((name) => !env[name]);
}

/** Reads the protocol's variables; call it only if none is missing. */
export function readSettings(env: Environment): Settings {
  const workerId = env.RUNPOD_POD_ID || `by-hand-${process.pid}`;
  const takeUrl = withQuery((env.RUNPOD_WEBHOOK_GET_JOB ?? "").replaceAll("$ID", workerId));
  const output = env.RUNPOD_WEBHOOK_POST_OUTPUT ?? "";
  const stream = env.RUNPOD_WEBHOOK_POST_STREAM || output.replace("/job-done/", "/job-stream/");
  const jobUrl = (template: string, jobId: string, isStream: boolean) =>
    `${forJob(template, workerId, jobId)}&isStream=${isStream}`;
  return {
    workerId,
    apiKey: env.RUNPOD_AI_API_KEY ?? "",
    pingIntervalMs: pingIntervalMs(env.RUNPOD_PING_INTERVAL),
    takeUrl,
    takeBatchUrl: takeUrl.replace("/job-take/", "/job-take-batch/"),
    stopUrl: takeUrl.replace("/job-take/", "/job-stop/"),
    doneBatchUrl: doneBatchUrl(output, workerId),
    pingUrl: env.RUNPOD_WEBHOOK_PING?.replaceAll("$RUNPOD_POD_ID", workerId) || undefined,
    doneUrl: (jobId, isStream) => jobUrl(output, jobId, isStream),
    // The stock worker sends isStream=false with every chunk; servers recognise the call by its path.
    streamUrl: (jobId) => jobUrl(stream, jobId, false),
  };
}

/** Appends parameters to a URL, with or without a query. */
export function withParameters(url: string, parameters: Readonly<Record<string, string>>): string {
  const query = new URLSearchParams(parameters).toString();
  return query === "" ? url : `${url}${url.includes("?") ? "&" : "?"}${query}`;
}

function forJob(template: string, workerId: string, jobId: string): string {
  return withQuery(template.replaceAll("$RUNPOD_POD_ID", workerId).replaceAll("$ID", encodeURIComponent(jobId)));
}

function doneBatchUrl(template: string, workerId: string): string | undefined {
  const single = "/job-done/$RUNPOD_POD_ID/$ID";
  return template.includes(single) ? template.replace(single, `/job-done-batch/${workerId}`) : undefined;
}

function withQuery(url: string): string {
  return url.includes("?") ? url : `${url}?`;
}

function pingIntervalMs(text: string | undefined): number {
  const given = Number(text);
  return text && Number.isFinite(given) ? Math.max(given, limits.pingIntervalMinMs) : limits.pingIntervalDefaultMs;
}
