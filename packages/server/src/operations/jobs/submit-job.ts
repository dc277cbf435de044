import { topics } from "../../bell.js";
import type { Endpoint } from "../../domain/endpoints/endpoint.js";
import { retentionMs } from "../../domain/jobs/job.js";
import { readTraceparent } from "../../domain/jobs/trace.js";
import { endpointNotFound, invalid, Refusal } from "../../errors.js";
import type { ReceivedText } from "../../json/json.js";
import { limits } from "../../limits/index.js";
import type { IdempotencyRecord, NewJob } from "../../store/index.js";
import type { Needs } from "../needs.js";
import { withinQueue } from "../usage/quotas.js";
import { readSubmission, type Submission } from "./submission.js";

/** The route of a submission: an idempotency key is valid only for the route it came with. */
export type SubmitRoute = "run" | "runsync" | `openai ${string}`;

/** How a job was submitted, and to which endpoint; everything except its body. */
export interface JobRequest {
  readonly endpoint: Endpoint;
  readonly route: SubmitRoute;
  /** The request's `wait`, if given. */
  readonly waitMs: number | undefined;
  readonly idempotencyKey: string | undefined;
  readonly requestId: string;
  /** The client's `traceparent`, if jobs are traced here. */
  readonly traceparent?: string | undefined;
}

export interface Submit extends JobRequest {
  readonly body: ReceivedText;
}

export type SubmitOutcome = { readonly jobId: string; readonly known?: IdempotencyRecord };
export type Submitted = SubmitOutcome & Pick<Submission, "ignored">;

type Submitting = Needs<"jobs" | "bell" | "clock" | "ids" | "vault" | "emit" | "registry" | "tallies" | "queueRoom">;
type ReadJob = Omit<Submission, "bytes" | "ignored">;

/** Stores a job; once this resolves it is on disk. A known idempotency key leads to its job, never to a second one. */
export async function submitJob(needs: Submitting, { body, ...asked }: Submit): Promise<Submitted> {
  checkKey(asked.idempotencyKey);
  const { bytes, ignored, ...parts } = await readSubmission(body);
  return { ...(await storeJob(needs, asked, parts, bytes)), ignored };
}

/** Stores a job whose body has been read already; `bytes` is the whole body. */
export async function storeJob(
  needs: Submitting,
  asked: JobRequest,
  parts: ReadJob,
  bytes: Uint8Array,
): Promise<SubmitOutcome> {
  const { endpoint, route, idempotencyKey } = asked;
  const bodyHash = idempotencyKey === undefined ? "" : needs.vault.hash(bytes);
  const now = needs.clock.now();
  const job = newJob(needs, asked, parts, now);
  const keyed: NewJob = {
    ...job,
    idempotency:
      idempotencyKey === undefined
        ? undefined
        : { keyHash: needs.vault.hash(idempotencyKey), bodyHash, route, expiresAt: now + limits.idempotencyMs },
  };
  const submitted = await withinQueue(needs, endpoint, () => {
    const storing = needs.jobs.submit(keyed);
    // a worker waiting in line gets the job in the commit that stores it
    if (needs.jobs.isInOrder) needs.bell.ring(topics.queue(endpoint.no));
    return storing;
  });
  if (submitted.kind === "closed") throw endpointNotFound(endpoint.id);
  if (submitted.kind === "known") return recognised(submitted.record, bodyHash, route);
  if (!needs.jobs.isInOrder) needs.bell.ring(topics.queue(endpoint.no));
  needs.bell.ring(topics.demand(endpoint.no));
  needs.bell.ring("expiries");
  needs.emit({ type: "job.submitted", endpointId: endpoint.id, jobId: job.id, requestId: asked.requestId });
  return { jobId: job.id };
}

function newJob(
  { ids, vault }: Needs<"ids" | "vault">,
  { endpoint, route, waitMs, traceparent }: JobRequest,
  parts: ReadJob,
  now: number,
): NewJob {
  const uuid = ids.uuid(now);
  return {
    endpointNo: endpoint.no,
    id: route === "run" ? `${uuid}-u1` : `sync-${uuid}-u1`,
    body: parts.input,
    webhook: parts.webhook,
    s3Config: parts.s3Config === undefined ? undefined : vault.seal(parts.s3Config),
    policy: parts.policyText,
    trace: readTraceparent(traceparent),
    lowPriority: parts.policy.lowPriority,
    executionTimeoutMs: parts.policy.executionTimeoutMs ?? endpoint.settings.executionTimeoutMs,
    retentionMs: retentionMs(route === "run" ? "run" : "runsync", waitMs),
    ttlEndAt: now + (parts.policy.ttlMs ?? limits.ttlMsDefault),
    createdAt: now,
    idempotency: undefined,
  };
}

/** Refuses a malformed idempotency key; having none is fine. */
export function checkKey(key: string | undefined): void {
  if (key === undefined) return;
  if (key.length === 0 || key.length > limits.idempotencyKeyCharsMax || !/^[\x21-\x7e]+$/.test(key)) {
    throw invalid(`Idempotency-Key must be 1 to ${limits.idempotencyKeyCharsMax} visible ASCII characters.`);
  }
}

function recognised(record: IdempotencyRecord, bodyHash: string, route: string): SubmitOutcome {
  if (record.bodyHash === bodyHash && record.route === route) return { jobId: record.jobId, known: record };
  const what = record.route === route ? "body" : "route";
  throw new Refusal(
    "IDEMPOTENCY_CONFLICT",
    `This Idempotency-Key was used with another ${what}; use a new key for a new job.`,
  );
}
