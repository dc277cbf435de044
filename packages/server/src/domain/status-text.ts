import { isFinal, type JobReport, times } from "./job.js";
import type { WaitReason } from "./wait-reason.js";

/** What is said of a waiting job beside its state. */
export interface Waiting {
  readonly waitReason: WaitReason;
  readonly waitDetail: string;
  readonly queuePosition?: number | undefined;
}

/**
 * A job's status body as JSON text (contract: Job). Output and progress go in as the text they came as, so nothing is
 * parsed and written again. `extra` is more JSON text, of whole members.
 */
export function statusText(job: JobReport, now: number, waiting?: Waiting, extra = ""): string {
  const { delayTime, executionTime } = times(job, now);
  let text = `{"id":${JSON.stringify(job.id)},"status":"${job.status}","delayTime":${delayTime},"executionTime":${executionTime}`;
  const output = isFinal(job.status) ? job.output : job.status === "IN_PROGRESS" ? job.progress : undefined;
  if (output !== undefined) text += `,"output":${output}`;
  if (job.error !== undefined && isFinal(job.status)) text += `,"error":${JSON.stringify(job.error)}`;
  text += `,"workerId":${JSON.stringify(job.workerId)},"retries":${job.retries}`;
  if (waiting) {
    text += `,"waitReason":"${waiting.waitReason}","waitDetail":${JSON.stringify(waiting.waitDetail)}`;
    if (waiting.queuePosition !== undefined) text += `,"queuePosition":${waiting.queuePosition}`;
  }
  return `${text}${extra}}`;
}
