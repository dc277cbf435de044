import { setMaxListeners } from "node:events";
import type { Endpoint } from "../../packages/server/src/domain/endpoints/endpoint.js";
import { isFinal } from "../../packages/server/src/domain/jobs/job.js";
import { Refusal } from "../../packages/server/src/errors.js";
import { limits } from "../../packages/server/src/limits/index.js";
import { readHealth } from "../../packages/server/src/operations/endpoints/read-health.js";
import { ownEndpoint } from "../../packages/server/src/operations/endpoints/save-endpoint.js";
import { cancelJob, cancelWaiting, setTtl } from "../../packages/server/src/operations/jobs/change-job.js";
import { awaitJob } from "../../packages/server/src/operations/jobs/read-job.js";
import { readStream } from "../../packages/server/src/operations/jobs/read-stream.js";
import { retryJob } from "../../packages/server/src/operations/jobs/retry-job.js";
import { submitJob } from "../../packages/server/src/operations/jobs/submit-job.js";
import { expiryOf, type Known } from "./known.js";
import type { Ledger } from "./ledger.js";
import { Broken, type Server } from "./server.js";
import type { Step } from "./steps.js";

/** A submission, which its client keeps in order to repeat it. */
interface Submission {
  readonly endpointId: string;
  readonly body: Buffer;
  readonly route: "run" | "runsync";
  readonly key: string | undefined;
  readonly waitMs: number | undefined;
  /** The id of the acknowledged job. */
  jobId?: string;
  acknowledgedAt?: number;
}

/** A client that waits for a job. */
export interface Waiting {
  readonly jobId: string;
  readonly untilAt: number;
}

export interface ClientWorld {
  readonly ledger: Ledger;
  readonly now: () => number;
  /** Whether the server is about to stop, and answers waiting clients early. */
  readonly isDraining: boolean;
  ask<T>(operation: (server: Server) => Promise<T>): Promise<T>;
  note(line: string): void;
  broken(rule: string, sentence: string): void;
}

/** The clients: their requests, the answers that they must get, and the promises made to them. */
export class Clients {
  readonly #world: ClientWorld;
  readonly #gone = new AbortController();
  readonly #asked = new Set<string>();
  readonly submissions: Submission[] = [];
  readonly waiting = new Set<Waiting>();
  /** Jobs whose ids a client has. */
  readonly jobs: { readonly id: string; readonly endpointId: string }[] = [];

  constructor(world: ClientWorld) {
    this.#world = world;
    setMaxListeners(0, this.#gone.signal);
  }

  askedTo = (what: string, name: string | number): boolean => this.#asked.has(`${what} ${name}`);
  /** Records a request before it is sent. */
  willAsk(what: "cancel" | "retry" | "purge" | "delete", name: string | number): void {
    this.#asked.add(`${what} ${name}`);
  }

  // submitting

  async submit(step: Extract<Step, { do: "submit" }>, endpointId: string): Promise<void> {
    const { recipe, policy, webhook, waitMs } = step;
    const body = { input: recipe, policy, ...(webhook ? { webhook: `http://hooks.test/${webhook}` } : {}) };
    const key = step.key === undefined ? undefined : `key-${step.key}`;
    const known = this.submissions.find((each) => key && each.key === key && each.endpointId === endpointId);
    if (known) return this.send(known);
    const route = waitMs === undefined ? "run" : "runsync";
    const made = { endpointId, body: Buffer.from(JSON.stringify(body)), route, key, waitMs } as const;
    this.submissions.push({ ...made });
    await this.send(this.submissions.at(-1) as Submission);
  }

  /** Sends a submission, perhaps again. */
  async send(submission: Submission): Promise<void> {
    const { endpointId, key, waitMs } = submission;
    const sent = await this.#do(
      "submit",
      undefined,
      async (server, endpoint) => {
        const { body, route } = submission;
        const asked = { endpoint, route, body: Buffer.from(body), waitMs, idempotencyKey: key, requestId: "r" };
        return submitJob(server.parts, asked);
      },
      endpointId,
    );
    if (!sent) return;
    const { ledger, broken, now } = this.#world;
    const job = ledger.jobs.get(sent.jobId);
    if (!job) return broken("acknowledged means stored", `${sent.jobId} was acknowledged, and is not stored`);
    const former = submission.jobId;
    const isKept = former !== undefined && now() - (submission.acknowledgedAt ?? 0) < limits.idempotencyMs;
    if (key !== undefined && isKept && former !== sent.jobId)
      broken("one key, one job", `${key} gave ${former}, then ${sent.jobId}`);
    if (former !== sent.jobId) {
      submission.jobId = sent.jobId;
      submission.acknowledgedAt = job.submitted.createdAt;
      this.jobs.push({ id: sent.jobId, endpointId });
    }
    if (waitMs !== undefined) await this.wait(sent.jobId, endpointId, waitMs);
  }

  /** Sends a known key with another body, which must be refused. */
  async misuseKey(submission: Submission): Promise<void> {
    const { endpointId, route, key, waitMs, acknowledgedAt = 0 } = submission;
    if (key === undefined || this.#world.now() - acknowledgedAt >= limits.idempotencyMs) return;
    const body = Buffer.from('{"input":{"other":true}}');
    const sent = await this.#do(
      "submit",
      undefined,
      ({ parts }, endpoint) => submitJob(parts, { endpoint, route, body, waitMs, idempotencyKey: key, requestId: "r" }),
      endpointId,
    );
    if (sent) this.#world.broken("one key, one job", `${key} was accepted with another body`);
  }

  // waiting and reading

  /** Waits for a job's end; with `leave` the client disconnects earlier. */
  async wait(jobId: string, endpointId: string, ms: number, leave?: AbortSignal): Promise<void> {
    const { now, broken, ledger } = this.#world;
    const waiting = { jobId, untilAt: 0 };
    const again = ledger.jobs.get(jobId)?.again;
    const found = await this.#do(
      "wait",
      jobId,
      ({ parts }, endpoint) => {
        waiting.untilAt = now() + ms;
        this.waiting.add(waiting);
        return awaitJob(parts, endpoint, jobId, ms, leave ?? this.#gone.signal);
      },
      endpointId,
    );
    this.waiting.delete(waiting);
    if (found === undefined) return;
    const { status } = found;
    const job = ledger.jobs.get(jobId);
    this.#world.note(`waited for ${jobId}: ${status}`);
    if (!isFinal(status) && now() < waiting.untilAt && !leave?.aborted && !this.#world.isDraining)
      broken("a waiting client gets the result", `${jobId}: ${status}, ${waiting.untilAt - now()} ms early`);
    if (isFinal(status) && job && !job.gone && job.again === again && job.status !== status)
      broken("one final state", `${jobId} was answered as ${status} and is ${job.status}`);
  }

  async stream(jobId: string, endpointId: string, isLost: boolean): Promise<void> {
    const { ledger, broken } = this.#world;
    for (let reads = 0; reads < 40; reads++) {
      const again = ledger.jobs.get(jobId)?.again;
      const handed = await this.#do(
        "stream",
        jobId,
        ({ parts }, endpoint) => readStream(parts, endpoint, jobId, limits.streamHoldMs, this.#gone.signal),
        endpointId,
      );
      if (!handed) return;
      const { chunks, status, job } = handed;
      const indices = chunks.map(({ index }) => index);
      this.#world.note(`read ${jobId}: ${indices} ${status}`);
      if (indices.some((index, at) => at > 0 && index <= (indices[at - 1] as number)))
        broken("chunks in order", `${jobId}: one reply held ${indices}`);
      if (chunks.some(({ start }) => start !== chunks[0]?.start)) broken("chunks in order", `${jobId}: of two starts`);
      if (isLost && chunks.length > 0) {
        isLost = false;
        await this.#do("stream", jobId, ({ parts }) => parts.chunks.handBack({ jobNo: job.no, chunks }), endpointId);
        continue;
      }
      const known = ledger.jobs.get(jobId);
      if (isFinal(status) && known && !known.gone && known.again === again && known.handed !== known.chunks)
        broken("chunks in order", `${jobId}: over at ${known.handed} of ${known.chunks}`);
      if (isFinal(status)) return;
    }
  }

  async health(endpointId: string): Promise<void> {
    await this.#do("health", undefined, ({ parts }, endpoint) => readHealth(parts, endpoint), endpointId);
  }

  // changing

  async cancel(jobId: string, endpointId: string): Promise<void> {
    this.willAsk("cancel", jobId);
    const done = await this.#do(
      "cancel",
      jobId,
      ({ parts }, endpoint) => cancelJob(parts, endpoint, jobId).then(() => true),
      endpointId,
    );
    const job = this.#world.ledger.jobs.get(jobId);
    if (done && job && !job.gone && job.status !== "CANCELLED")
      this.#world.broken("answers are true", `${jobId} was cancelled, and is ${job.status}`);
  }

  async retry(jobId: string, endpointId: string): Promise<void> {
    this.willAsk("retry", jobId);
    const before = this.#world.ledger.jobs.get(jobId)?.again;
    const done = await this.#do(
      "retry",
      jobId,
      ({ parts }, endpoint) => retryJob(parts, endpoint, jobId).then(() => true),
      endpointId,
    );
    const job = this.#world.ledger.jobs.get(jobId);
    if (done && job && job.again === before)
      this.#world.broken("answers are true", `${jobId} was to be retried, and was not`);
  }

  async ttl(jobId: string, endpointId: string, ms: number): Promise<void> {
    const job = this.#world.ledger.jobs.get(jobId) as Known;
    this.#asked.add(`ttl ${jobId} ${job.submitted.createdAt + ms}`);
    const done = await this.#do(
      "ttl",
      jobId,
      ({ parts }, endpoint) => setTtl(parts, endpoint, jobId, ms).then(() => true),
      endpointId,
    );
    if (done && !this.askedTo("ttl", `${jobId} ${job.ttlEndAt}`))
      this.#world.broken("answers are true", `${jobId} does not have its new ttl`);
  }

  async purge(endpointId: string): Promise<void> {
    const { ledger, broken, now } = this.#world;
    const before: [Known, number, number][] = [];
    await this.#do(
      "purge",
      undefined,
      async ({ parts }, endpoint) => {
        this.willAsk("purge", endpoint.no);
        for (const job of ledger.jobs.values())
          if (job.endpointNo === endpoint.no && job.status === "IN_QUEUE") before.push([job, job.starts, job.again]);
        await cancelWaiting(parts, endpoint.no, "The queue was purged.");
        for (const [job, starts, again] of before) {
          if (job.status !== "IN_QUEUE" || job.gone || job.starts !== starts || job.again !== again) continue;
          if (expiryOf(job) > now()) broken("answers are true", `${job.id} outlived a purge`);
        }
      },
      endpointId,
    );
  }

  /** Sends one request. It may get one of the expected refusals, but must not fail. */
  async #do<T>(
    what: string,
    jobId: string | undefined,
    operation: (server: Server, endpoint: Endpoint) => Promise<T>,
    endpointId: string,
  ): Promise<T | undefined> {
    const { broken, ledger, now, note } = this.#world;
    try {
      return await this.#world.ask(async (server) =>
        operation(server, ownEndpoint(server.parts, server.admin, endpointId)),
      );
    } catch (error) {
      if (error instanceof Broken) return undefined;
      if (!(error instanceof Refusal)) {
        broken("no failure", `${what}: ${error instanceof Error ? error.stack : error}`);
        return undefined;
      }
      note(`${what} ${jobId ?? ""}: ${error.code}`);
      const job = jobId === undefined ? undefined : ledger.jobs.get(jobId);
      if (error.code === "JOB_NOT_FOUND" && job && !job.gone && !job.vanished && expiryOf(job) > now())
        broken("no job is deleted early", `${jobId} was not found by ${what}, but is ${job.status}`);
      const isExpected = ["JOB_NOT_FOUND", "ENDPOINT_NOT_FOUND", "INVALID_STATE", "IDEMPOTENCY_CONFLICT"];
      if (!isExpected.includes(error.code)) broken("no failure", `${what}: ${error.code} ${error.message}`);
      return undefined;
    }
  }
}
