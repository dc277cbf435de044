import type { Generated } from "kysely";

/** The cool tables as both databases have them: JSON is text, times are integer milliseconds, flags are 0 or 1. */
export interface Tables {
  user: {
    no: Generated<number>;
    id: string;
    name: string;
    is_admin: number;
    webhook_secret: string;
    old_webhook_secret: string | null;
    old_webhook_secret_until: number | null;
    pub_key: string;
    created_at: number | null;
    deleted_at: number | null;
  };
  api_key: {
    no: Generated<number>;
    id: string;
    name: string;
    hash: string;
    prefix: string;
    scope: string;
    owner_no: number;
    is_bootstrap: number;
    created_at: number | null;
    expires_at: number | null;
    old_hash: string | null;
    old_prefix: string | null;
    old_until: number | null;
  };
  key_use: { key_no: number; at: number };
  environment_key: { hash: string };
  secret: {
    no: Generated<number>;
    id: string;
    owner_no: number;
    name: string;
    description: string;
    value: string;
    created_at: number;
  };
  host: { no: Generated<number>; id: string; seen_at: number };
  version: {
    endpoint_no: number;
    n: number;
    made_at: number;
    settings: string;
    template: string;
    rollback_of: number | null;
    proven_at: number | null;
    held_at: number | null;
    verdict: string | null;
  };
  template: { no: Generated<number>; id: string; owner_no: number; settings: string };
  volume: {
    no: Generated<number>;
    id: string;
    owner_no: number;
    name: string;
    size: number;
    data_center_id: string;
  };
  registry_auth: {
    no: Generated<number>;
    id: string;
    owner_no: number;
    name: string;
    username: string;
    password: string;
  };
  endpoint: {
    no: Generated<number>;
    id: string;
    owner_no: number;
    settings: string;
    version: number;
    created_at: number;
    deleted_at: number | null;
    proven_version: Generated<number>;
    held_version: number | null;
    failed_starts: Generated<number>;
    failed_at: number | null;
    verdict: string | null;
  };
  worker: {
    no: Generated<number>;
    id: string;
    endpoint_no: number;
    version: number;
    host_no: number;
    wanted: "running" | "closed" | "paused" | "stopped";
    secret_hash: string | null;
    handle: string | null;
    worker_url: string | null;
    resources: string | null;
    address: string | null;
    created_at: number;
    throttled_at: number | null;
    placed_at: number | null;
    image_at: number | null;
    made_at: number | null;
    started_at: number | null;
    ready_at: number | null;
    output_at: number | null;
    paused_at: number | null;
    resumed_at: number | null;
    closed_at: number | null;
    stop_at: number | null;
    asked_at: number | null;
    kill_at: number | null;
    ended_at: number | null;
    last_done_at: number | null;
    has_pinged: Generated<number>;
    trouble: string | null;
    why: string | null;
    exit: string | null;
    seen_at: Generated<number>;
    busy_at: Generated<number>;
    polled_at: Generated<number>;
    slots: Generated<number>;
  };
  job: { no: number; endpoint_no: number; awaits_delivery: number };
  audit: {
    no: Generated<number>;
    at: number;
    user_no: number;
    user_id: string;
    key_id: string;
    key_prefix: string;
    address: string | null;
    request_id: string | null;
    action: string;
    resource: string;
    before: string | null;
    after: string | null;
  };
  delivery: {
    no: Generated<number>;
    job_no: number;
    job_id: string;
    endpoint_no: number;
    webhook_id: string;
    url: string;
    tries: Generated<number>;
    state: "pending" | "delivered" | "failed";
    next_at: number | null;
    ended_at: number | null;
  };
  attempt: {
    delivery_no: number;
    n: number;
    at: number;
    status: number | null;
    error: string | null;
    duration_ms: number;
  };
  tally: { endpoint_no: number; waiting: number; running: number };
  decision: {
    no: Generated<number>;
    endpoint_no: number;
    from_at: number;
    until_at: number;
    times: number;
    inputs: string;
    outcome: string;
    reason: string;
  };
}
