import type { Endpoint, HealthBody, StatusBody, Worker } from "@millrace/api";
import { queryOptions } from "@tanstack/react-query";
import { client } from "./session.js";

/** An endpoint with its counts, which come after it. */
export interface Seen extends Endpoint {
  readonly health?: HealthBody;
}

export const endpointsQuery = queryOptions({
  queryKey: ["endpoints"],
  queryFn: () => client().call<Seen[]>("GET", "/v1/endpoints?includeHealth=true"),
});

export const endpointQuery = (id: string) =>
  queryOptions({ queryKey: ["endpoint", id], queryFn: () => client().call<Endpoint>("GET", `/v1/endpoints/${id}`) });

export const healthQuery = (id: string) =>
  queryOptions({ queryKey: ["health", id], queryFn: () => client().call<HealthBody>("GET", `/v2/${id}/health`) });

export const workersQuery = (id: string) =>
  queryOptions({
    queryKey: ["workers", id],
    queryFn: () => client().call<Worker[]>("GET", `/v1/endpoints/${id}/workers?ended=true`),
  });

/** A page of an endpoint's jobs, newest first. */
export const requestsQuery = (id: string, status: string | undefined) =>
  queryOptions({
    queryKey: ["requests", id, status],
    queryFn: () =>
      client().call<{ requests: StatusBody[]; cursor?: string }>(
        "GET",
        `/v2/${id}/requests?limit=50${status ? `&status=${status}` : ""}`,
      ),
  });

export const jobQuery = (endpointId: string, id: string) =>
  queryOptions({
    queryKey: ["job", endpointId, id],
    queryFn: () => client().call<StatusBody>("GET", `/v2/${endpointId}/status/${id}`),
  });
