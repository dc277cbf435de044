import { topics } from "../bell.js";
import type { Endpoint } from "../domain/endpoint.js";
import { retentionMs } from "../domain/job.js";
import { endpointNotFound, invalid, Refusal } from "../errors.js";
import type { Sent } from "../json.js";
import { limits } from "../limits.js";
import type { IdempotencyRecord, NewJob } from "../store.js";
import type { Needs } from "./needs.js";
import { readSubmission, type SubmissionParts } from "./submission.js";

export interface Submit {
  readonly endpoint: Endpoint;
  readonly route: "run" | "runsync";
  readonly body: Sent;
  /** Where it was given. */
  readonly waitMs: number | undefined;
  readonly idempotencyKey: string | undefined;
  readonly requestId: string;
}

export type SubmitOutcome = { readonly jobId: string; readonly known?: IdempotencyRecord };

/** Stores a job; when this resolves it is on disk. With an idempotency key the same job again, never a second one. */
export async function submitJob(
  needs: Needs<"jobs" | "bell" | "clock" | "ids" | "vault" | "emit">,
  submit: Submit,
): Promise<SubmitOutcome> {
  const { endpoint, route, idempotencyKey } = submit;
  if (idempotencyKey !== undefined) checkKey(idempotencyKey);
  const { bytes, ...parts } = await readSubmission(submit.body);
  const bodyHash = idempotencyKey === undefined ? "" : needs.vault.hash(bytes);
  const now = needs.clock.now();
  const job = newJob(needs, submit, parts, now);
  const keyed: NewJob = {
    ...job,
    idempotency:
      idempotencyKey === undefined
        ? undefined
        : { keyHash: needs.vault.hash(idempotencyKey), bodyHash, route, expiresAt: now + limits.idempotencyMs },
  };
  const storing = needs.jobs.submit(keyed);
  // a worker that stands in line gets the job in the commit that stores it
  if (needs.jobs.isInOrder) needs.bell.ring(topics.queue(endpoint.no));
  const submitted = await storing;
  if (submitted.kind === "closed") throw endpointNotFound(endpoint.id);
  if (submitted.kind === "known") return recognised(submitted.record, bodyHash, route);
  if (!needs.jobs.isInOrder) needs.bell.ring(topics.queue(endpoint.no));
  needs.bell.ring(topics.demand(endpoint.no));
  needs.bell.ring("expiries");
  needs.emit({ type: "job.submitted", endpointId: endpoint.id, jobId: job.id, requestId: submit.requestId });
  return { jobId: job.id };
}

function newJob(
  { ids, vault }: Needs<"ids" | "vault">,
  submit: Submit,
  parts: Omit<SubmissionParts, "bytes">,
  now: number,
): NewJob {
  const { endpoint, route, waitMs } = submit;
  const uuid = ids.uuid(now);
  return {
    endpointNo: endpoint.no,
    id: route === "run" ? `${uuid}-u1` : `sync-${uuid}-u1`,
    body: parts.input,
    webhook: parts.webhook,
    s3Config: parts.s3Config === undefined ? undefined : vault.seal(parts.s3Config),
    policy: parts.policyText,
    lowPriority: parts.policy.lowPriority,
    executionTimeoutMs: parts.policy.executionTimeoutMs ?? endpoint.settings.executionTimeoutMs,
    retentionMs: retentionMs(route, waitMs),
    ttlEndAt: now + (parts.policy.ttlMs ?? limits.ttlMsDefault),
    createdAt: now,
    idempotency: undefined,
  };
}

function checkKey(key: string): void {
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
