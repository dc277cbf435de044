import type {
  ColdStartsView,
  Endpoint,
  HealthBody,
  HostView,
  JobStory,
  ReleaseView,
  ScalingDecision,
  StatusBody,
  Template,
  Timings,
  Worker,
} from "@millrace/api";
import { queryOptions } from "@tanstack/react-query";
import { readJson } from "./parts/story/exact.js";
import { get, getText } from "./session.js";

/** How often a job that waits or runs is looked at. */
const goesOnMs = 1_000;

/** An endpoint with its counts. */
export interface Seen extends Endpoint {
  readonly health?: HealthBody;
}

/** A page of an endpoint's jobs, newest first. */
export interface JobPage {
  readonly requests: readonly StatusBody[];
  readonly nextCursor?: string;
}

const read = <T>(key: readonly string[], path: string) => queryOptions({ queryKey: key, queryFn: () => get<T>(path) });

export const endpointsQuery = read<Seen[]>(["endpoints"], "/v1/endpoints?includeHealth=true");

/** One endpoint as the list has it. */
export const readSeen = (id: string) => get<Seen>(`/v1/endpoints/${id}?includeHealth=true`);

export const endpointQuery = (id: string) =>
  read<Endpoint & { readonly template?: Template }>(["endpoint", id], `/v1/endpoints/${id}?includeTemplate=true`);
export const healthQuery = (id: string) => read<HealthBody>(["health", id], `/v2/${id}/health`);
export const workersQuery = (id: string) => read<Worker[]>(["workers", id], `/v1/endpoints/${id}/workers?ended=true`);
export const scalingQuery = (id: string) => read<ScalingDecision[]>(["scaling", id], `/v1/endpoints/${id}/scaling`);
export const releasesQuery = (id: string) => read<ReleaseView[]>(["releases", id], `/v1/endpoints/${id}/releases`);
export const coldStartsQuery = (id: string) =>
  read<ColdStartsView>(["cold-starts", id], `/v1/endpoints/${id}/cold-starts`);

export const timingsQuery = (id: string) => read<Timings>(["timings", id], `/v1/endpoints/${id}/timings`);
export const hostsQuery = read<HostView[]>(["hosts"], "/v1/hosts");

export const requestsPath = (id: string, status: string | undefined, cursor?: string) =>
  `/v2/${id}/requests?limit=50${status ? `&status=${status}` : ""}${cursor ? `&cursor=${cursor}` : ""}`;
/** The newest job that waits, for the reason. */
export const firstWaitingQuery = (id: string) =>
  read<JobPage>(["requests", id, "first waiting"], `/v2/${id}/requests?limit=1&status=IN_QUEUE`);
export const requestsQuery = (id: string, status: string | undefined) =>
  read<JobPage>(["requests", id, status ?? "all"], requestsPath(id, status));

/** A job's status, with the numbers of its output as they are written. */
export const readStatus = async (endpointId: string, id: string): Promise<StatusBody> =>
  readJson(await getText(`/v2/${endpointId}/status/${id}`)) as StatusBody;
/** Whether a job has ended: only a retry changes it then. */
export const isFinal = (status: StatusBody["status"]): boolean => status !== "IN_QUEUE" && status !== "IN_PROGRESS";
/** A job's status, read again until it has ended: no event says how long it has waited or run by now, or still has to. */
export const jobQuery = (endpointId: string, id: string) =>
  queryOptions({
    queryKey: ["job", endpointId, id],
    queryFn: () => readStatus(endpointId, id),
    refetchInterval: ({ state: { data } }) => data !== undefined && !isFinal(data.status) && goesOnMs,
  });
export const storyQuery = (endpointId: string, id: string) =>
  read<JobStory>(["story", endpointId, id], `/v1/endpoints/${endpointId}/jobs/${id}`);
export const inputQuery = (endpointId: string, id: string) =>
  queryOptions({
    queryKey: ["input", endpointId, id],
    queryFn: async () => readJson(await getText(`/v1/endpoints/${endpointId}/jobs/${id}/input`)),
  });
export const deliveriesQuery = (jobId: string) =>
  read<Delivery[]>(["deliveries", jobId], `/v1/webhooks/deliveries?jobId=${jobId}`);
/** One delivery, with what its receiver answered. */
export const deliveryQuery = (id: string) => read<Delivery>(["delivery", id], `/v1/webhooks/deliveries/${id}`);
export const workerQuery = (id: string) => read<Worker>(["worker", id], `/v1/workers/${id}`);

/** A webhook's delivery with its attempts. */
export interface Delivery {
  readonly id: string;
  readonly jobId: string;
  readonly url: string;
  readonly state: string;
  readonly nextAttemptAt?: string;
  readonly attempts: readonly {
    readonly at: string;
    readonly status?: number;
    readonly error?: string;
    readonly durationMs: number;
    readonly reply?: string;
  }[];
}

/** A list of the management API. */
export const listQuery = <T>(path: string) => read<T[]>(["list", path], path);
/** The templates that endpoints can be made from: one's own, and those that others share. */
export const templatesQuery = listQuery<Template>("/v1/templates?includePublicTemplates=true");
export const pageQuery = <T>(path: string) => read<T>(["page", path], path);
