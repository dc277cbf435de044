import { isFinal, type JobReport, type JobStatus, type JobTexts, times } from "./job.js";
import type { WaitReason } from "./wait-reason.js";

/** What a waiting job's status shows besides its state. */
export interface Waiting {
  readonly waitReason: WaitReason;
  readonly waitDetail: string;
  readonly queuePosition?: number | undefined;
}

/**
 * A job's status body as JSON text (contract: Job). Output and progress are inserted as received, never parsed and
 * re-serialised. `extra`: more JSON members as text.
 */
export function statusText(job: JobReport, now: number, waiting?: Waiting, extra = ""): string {
  const output = isFinal(job.status) ? job.output : job.status === "IN_PROGRESS" ? job.progress : undefined;
  const error = isFinal(job.status) ? job.error : undefined;
  let text = head(job, now);
  if (output !== undefined) text += `,"output":${output}`;
  if (error !== undefined) text += `,"error":${JSON.stringify(error)}`;
  return text + tail(job, waiting, extra);
}

/** The same body in pieces, for a job whose texts were read separately. */
export function statusPieces(job: JobReport, texts: JobTexts, now: number, extra = ""): (string | Uint8Array)[] {
  const output = isFinal(job.status) ? texts.output : job.status === "IN_PROGRESS" ? texts.progress : undefined;
  const error = isFinal(job.status) ? texts.error : undefined;
  return [
    head(job, now),
    ...(output ? [',"output":', ...output] : []),
    ...(error ? [',"error":', ...error] : []),
    tail(job, undefined, extra),
  ];
}

function head(job: JobReport, now: number): string {
  const { delayTime, executionTime } = times(job, now);
  return `{"id":${JSON.stringify(job.id)},"status":"${job.status}","delayTime":${delayTime},"executionTime":${executionTime}`;
}

function tail(job: JobReport, waiting: Waiting | undefined, extra: string): string {
  let text = `,"workerId":${JSON.stringify(job.workerId)},"retries":${job.retries}`;
  if (waiting) {
    text += `,"waitReason":"${waiting.waitReason}","waitDetail":${JSON.stringify(waiting.waitDetail)}`;
    if (waiting.queuePosition !== undefined) text += `,"queuePosition":${waiting.queuePosition}`;
  }
  return `${text}${extra}}`;
}

/** The status body of an expired job that is still known by its idempotency key. */
export const goneText = ({ jobId, lastStatus }: { readonly jobId: string; readonly lastStatus: JobStatus }): string =>
  JSON.stringify({ id: jobId, status: lastStatus, expired: true });
