/** The six states of a job (contract: States and transitions). */
export const jobStatuses = ["IN_QUEUE", "IN_PROGRESS", "COMPLETED", "FAILED", "CANCELLED", "TIMED_OUT"] as const;
export type JobStatus = (typeof jobStatuses)[number];

/** Why a job is still waiting: one word for programs; `waitDetail` has a sentence for people. */
export const waitReasons = [
  "no_worker",
  "starting",
  "workers_busy",
  "no_capacity",
  "quota_reached",
  "location",
  "workers_max_reached",
  "workers_max_zero",
  "low_priority",
  "start_failed",
  "crash_looping",
] as const;
export type WaitReason = (typeof waitReasons)[number];
