interface Described {
  readonly name: string;
  readonly help: string;
  readonly labelNames: readonly string[];
}

/** Every metric of Millrace's own: its name, its meaning and its labels. The reference page is generated from it. */
export const metricTable = {
  jobs: {
    name: "millrace_jobs",
    help: "Jobs of each endpoint by state: IN_QUEUE and IN_PROGRESS are those of now, COMPLETED and FAILED are totals. For load-balanced endpoints, these are requests. Servers that share a database report the same numbers.",
    labelNames: ["endpoint", "state"],
  },
  oldestWait: {
    name: "millrace_job_oldest_wait_seconds",
    help: "How long the oldest waiting job of normal priority has been in the queue. Absent while none waits. Servers that share a database report the same numbers.",
    labelNames: ["endpoint"],
  },
  delay: {
    name: "millrace_job_delay_seconds",
    help: "Time that jobs spent in the queue before a worker took them, counted by the server that gave them out.",
    labelNames: ["endpoint"],
  },
  execution: {
    name: "millrace_job_execution_seconds",
    help: "Time from the take of a job to its end (0 if no worker had taken it), by final status: COMPLETED, FAILED, CANCELLED or TIMED_OUT.",
    labelNames: ["endpoint", "status"],
  },
  givenBack: {
    name: "millrace_jobs_given_back_total",
    help: "Jobs that went back to the queue after a worker had taken them. excused is true if Millrace took the job back itself, for example because it stopped the worker; it is false if the worker was lost, which counts as one of the job's starts.",
    labelNames: ["endpoint", "excused"],
  },
  workers: {
    name: "millrace_workers",
    help: "Live workers of each endpoint by state: starting, idle, running, throttled (waiting for a host with free GPUs, processors or memory), paused, closing or stopping. A state without workers has no line. Servers that share a database report the same numbers.",
    labelNames: ["endpoint", "state"],
  },
  failedStarts: {
    name: "millrace_worker_starts_failed_total",
    help: "Workers that ended by themselves soon after their start, before they finished any job.",
    labelNames: ["endpoint"],
  },
  gpus: {
    name: "millrace_gpus",
    help: "GPUs of this server's machine, and of the cluster while it tends that, by state: held by a worker, free, or lost (seen since the server started, and missing or broken now).",
    labelNames: ["state"],
  },
  requests: {
    name: "millrace_request_seconds",
    help: "Time to answer HTTP requests, by route, method and status. Some routes hold a request until there is news, for example /runsync and the workers' /job-take. The status is 499 if the client left before its reply began.",
    labelNames: ["route", "method", "status"],
  },
  webhooks: {
    name: "millrace_webhook_attempts_total",
    help: "Attempts to deliver a webhook: delivered, failed (to be tried again), or given_up (failed, and it was the last attempt).",
    labelNames: ["outcome"],
  },
} as const satisfies Record<string, Described>;
