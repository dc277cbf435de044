import type { Endpoint } from "../../domain/endpoints/endpoint.js";
import { Refusal } from "../../errors.js";
import type { Needs } from "../needs.js";
import { cancelJob } from "./change-job.js";

/** Cancels a job whose client has gone. A job that has ended meanwhile stays as it is. Never throws. */
export async function abandonJob(
  needs: Needs<"jobs" | "reader" | "clock" | "bell" | "registry" | "emit" | "changes">,
  endpoint: Endpoint,
  jobId: string,
): Promise<void> {
  try {
    await cancelJob(needs, endpoint, jobId);
  } catch (error) {
    if (error instanceof Refusal && (error.code === "INVALID_STATE" || error.code === "JOB_NOT_FOUND")) return;
    needs.emit({ type: "server.warning", message: "a job whose client has gone could not be cancelled", error });
  }
}
