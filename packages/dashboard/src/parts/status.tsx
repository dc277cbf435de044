import type { JobStatus } from "@millrace/api";

export const statusWords: Readonly<Record<JobStatus, string>> = {
  IN_QUEUE: "waiting",
  IN_PROGRESS: "running",
  COMPLETED: "completed",
  FAILED: "failed",
  CANCELLED: "cancelled",
  TIMED_OUT: "timed out",
};

/** A job's state: the only six colours that mean a state. */
export const Status = ({ of }: { readonly of: JobStatus }) => (
  <span className={`status ${of.toLowerCase().replace("_", "-")}`}>{statusWords[of]}</span>
);
