import type { Endpoint, EndpointSettings } from "./domain/endpoint.js";
import type { SaidFacts } from "./domain/host.js";
import type { Change, Job, JobReport, JobStatus, JobTexts, JsonText, Verdict } from "./domain/job.js";
import type { ApiKey, Scope } from "./domain/key.js";
import type { RegistryAuth } from "./domain/registry-auth.js";
import type { Release } from "./domain/release.js";
import type { Template, TemplateSettings } from "./domain/template.js";
import type { Volume } from "./domain/volume.js";
import type { Resources, Worker } from "./domain/worker.js";
import type { WorkerChange } from "./domain/worker-life.js";

/** A job to store. `policy` is JSON, too; `s3Config` is sealed already. */
export interface NewJob {
  readonly endpointNo: number;
  readonly id: string;
  readonly body: JsonText;
  readonly webhook: string | undefined;
  readonly s3Config: string | undefined;
  readonly policy: string | undefined;
  readonly lowPriority: boolean;
  readonly executionTimeoutMs: number;
  readonly retentionMs: number;
  readonly ttlEndAt: number;
  readonly createdAt: number;
  readonly idempotency:
    | { readonly keyHash: string; readonly bodyHash: string; readonly route: string; readonly expiresAt: number }
    | undefined;
}

/** What an idempotency key stands for, also after its job is gone. */
export interface IdempotencyRecord {
  readonly jobId: string;
  readonly bodyHash: string;
  readonly route: string;
  readonly lastStatus: JobStatus;
}

export type Submitted =
  | { readonly kind: "submitted" }
  | { readonly kind: "known"; readonly record: IdempotencyRecord }
  | { readonly kind: "closed" }; // the endpoint is deleted

/** One worker's wish in a turn of its line. */
export interface Ask {
  readonly workerNo: number;
  readonly count: number;
}

/** A job as its worker is handed it. */
export interface TakenJob {
  readonly no: number;
  readonly id: string;
  readonly workerNo: number;
  readonly starts: number;
  readonly takenAt: number;
  readonly queuedAt: number;
  readonly deadlineAt: number;
  /** Its JSON; undefined where it is larger than `takeReadBytesMax`, and to be read apart. */
  readonly input: string | undefined;
  readonly inputBytes: number;
  readonly webhook: string | undefined;
  readonly s3Config: string | undefined;
  readonly policy: string | undefined;
}

export interface Taken {
  readonly jobs: TakenJob[];
  readonly dry: boolean;
}

/** A job that a worker holds, or was told to stop and has not confirmed. */
export interface HeldJob {
  readonly no: number;
  readonly endpointNo: number;
  readonly id: string;
  readonly status: JobStatus;
  readonly starts: number;
  readonly excused: number;
  readonly workerNo: number;
  readonly takenAt: number;
  readonly finishedAt: number | undefined;
  readonly stopWanted: boolean;
}

/** What a settled job was, for whoever waits for it or counts it. */
export interface Settled {
  readonly id: string;
  readonly status: JobStatus;
  readonly delivery: boolean;
  readonly delayMs: number;
  readonly executionMs: number;
}

/** The hot half of the queue: every verb is one commit, and resolves only when it is on disk. */
export interface JobStore {
  /** Whether a take finds every job whose submission was called before it, committed or not: both are in one commit then. */
  readonly isInOrder: boolean;
  submit(job: NewJob): Promise<Submitted>;
  /**
   * Hands waiting jobs to workers, in the order of `asks`; none to a worker that is closed. It ends with the job whose input
   * reaches `takeBytesMax`. `dry`: nothing was left.
   */
  take(endpointNo: number, asks: readonly Ask[], now: number): Promise<Taken>;
  /** Records a worker's last word; undefined where it no longer holds the job (the word also confirms a stop). */
  settle(
    endpointNo: number,
    jobId: string,
    workerNo: number,
    verdict: Verdict,
    now: number,
  ): Promise<Settled | undefined>;
  progress(endpointNo: number, jobId: string, workerNo: number, progress: JsonText): Promise<boolean>;
  /** Applies a change where the job still is as it was read (status, starts, worker). */
  change(
    job: Pick<Job, "endpointNo" | "no" | "status" | "starts" | "workerNo">,
    change: Change,
    now: number,
  ): Promise<Settled | undefined>;
  /** Says when a running job began, for its times; its `executionTimeout` counts from `beginsBy` on. */
  begin(
    job: Pick<HeldJob, "endpointNo" | "no" | "starts" | "workerNo">,
    beganAt: number,
    beginsBy: number,
  ): Promise<void>;
  /** Sets the ttl; the job may be gone at once. */
  setTtl(job: Pick<Job, "endpointNo" | "no">, ttlEndAt: number, now: number): Promise<boolean>;
  /** Forgets that these jobs were to be stopped: their worker has done so, or is gone. */
  confirmStopped(workerNo: number, jobNos: readonly number[]): Promise<void>;
  /** Cancels waiting jobs up to a place, a batch at a time. */
  cancelWaiting(endpointNo: number, upToPlace: number, error: string, now: number, limit: number): Promise<Settled[]>;
  /** Deletes what has expired, a batch at a time; running jobs are marked to be stopped first. */
  sweep(now: number, limit: number): Promise<{ deleted: number; stopped: HeldJob[]; more: boolean }>;
}

/** What can be asked of the queue without changing it. Nothing that has expired is ever shown. */
export interface JobReader {
  /** The job; its texts only where they are at most `textReadBytesMax` together (see `unreadBytes`). */
  find(endpointNo: number, jobId: string, now: number): Promise<JobReport | undefined>;
  /** The job with its large texts, all as of one moment; without them where they are larger than `bytesMax` together. */
  findTexts(
    endpointNo: number,
    jobId: string,
    now: number,
    bytesMax: number,
    /** Where nobody waits for them any more, the reading may end early, with undefined. */
    gone?: { readonly aborted: boolean },
  ): Promise<{ job: JobReport; texts: JobTexts | undefined } | undefined>;
  /** What came with the job's input, as stored, and the input's size. */
  submission(
    jobNo: number,
  ): Promise<{ inputBytes: number; webhook: string | undefined; s3Config: string | undefined } | undefined>;
  /** The job's input as UTF-8 JSON, in pieces; undefined where the job is gone. */
  input(jobNo: number): Promise<readonly Uint8Array[] | undefined>;
  /**
   * The newest first, up to `limit` and up to a number of bytes of their texts; at least one, which comes without its texts
   * where they alone are more. `more`: others follow.
   */
  list(
    endpointNo: number,
    query: { status?: JobStatus; limit: number; bytesMax?: number; beforeNo?: number },
    now: number,
  ): Promise<{ jobs: JobReport[]; more: boolean }>;
  /** By worker, what it holds or has to stop. */
  heldBy(workerNo: number): Promise<HeldJob[]>;
  /** Running jobs past their deadline. */
  overdue(now: number, limit: number): Promise<HeldJob[]>;
  /** Jobs to stop that no worker has confirmed. */
  unstopped(): Promise<HeldJob[]>;
  /** Running jobs, and jobs to stop, whose worker has ended: what a crash may leave. */
  orphaned(): Promise<HeldJob[]>;
  nextDeadline(): Promise<number | undefined>;
  nextExpiry(): Promise<number | undefined>;
  /** Jobs before this place, counted up to `max`. */
  position(endpointNo: number, place: number, max: number): Promise<number>;
  lastPlace(): Promise<number>;
}

/** An endpoint's counts, kept in the jobs' own commits. */
export interface Tally {
  readonly waiting: number;
  readonly waitingNormal: number;
  readonly running: number;
  readonly completed: number;
  readonly failed: number;
  readonly retried: number;
}

export interface TallyReader {
  tally(endpointNo: number): Promise<Tally>;
  /** Since when the oldest normal job waits. */
  oldestWaiting(endpointNo: number): Promise<number | undefined>;
  /** How many jobs each worker of an endpoint holds. */
  holdings(endpointNo: number): Promise<ReadonlyMap<number, number>>;
  /** Counts again from the jobs: for tests, and for repair. */
  recount(endpointNo: number): Promise<Tally>;
}

/** A piece of output, as JSON. */
export interface Chunk {
  readonly index: number;
  readonly start: number;
  readonly output: JsonText;
  readonly metrics: string | undefined;
}

/** A piece of output to be stored, with what its worker says of it. */
export interface NewChunk {
  readonly output: JsonText;
  readonly metrics?: string;
}

export interface ChunkStore {
  /**
   * Appends a worker's chunks; false where it no longer holds the job. `name` is the worker's own for this call: one of the same
   * name as the call before it, in the same start, is a repeat and changes nothing.
   */
  append(
    endpointNo: number,
    jobId: string,
    workerNo: number,
    pieces: readonly NewChunk[],
    name?: string,
  ): Promise<boolean>;
  /** Takes the chunks not yet handed out, up to a number of bytes (at least one); `more` says whether any is left. */
  handOut(jobNo: number, bytesMax: number): Promise<{ chunks: Chunk[]; more: boolean }>;
  /** Gives back what a reply could not deliver, where nothing was handed out since. */
  handBack(jobNo: number, chunks: readonly Chunk[]): Promise<void>;
  /** Reads without consuming, from an index on. */
  read(jobNo: number, fromIndex: number, bytesMax: number): Promise<Chunk[]>;
}

export interface Delivery {
  readonly no: number;
  readonly jobNo: number;
  readonly jobId: string;
  readonly endpointNo: number;
  readonly webhookId: string;
  readonly url: string;
  readonly tries: number;
  readonly state: "pending" | "delivered" | "failed";
  readonly nextAt: number | undefined;
}
export interface Attempt {
  readonly at: number;
  readonly status: number | undefined;
  readonly error: string | undefined;
  readonly durationMs: number;
}

/** A delivery whose time has come, and about how many bytes its body has. */
export interface DueDelivery extends Delivery {
  readonly bytes: number;
}

export interface DeliveryStore {
  /** Pending deliveries whose time has come, in order, those after `after` only. */
  due(now: number, limit: number, after?: Pick<Delivery, "no" | "nextAt">): Promise<DueDelivery[]>;
  nextDue(): Promise<number | undefined>;
  /** Adds an attempt to a delivery, and says what becomes of it. The same attempt may be recorded again: it counts once. */
  record(deliveryNo: number, attempt: Attempt, outcome: { state: Delivery["state"]; nextAt?: number }): Promise<void>;
  list(
    endpointNos: readonly number[],
    jobId: string | undefined,
    limit: number,
  ): Promise<(Delivery & { attempts: Attempt[] })[]>;
  /** Deliveries and their attempts that ended before `before`. */
  forget(before: number): Promise<void>;
}

/** What makes a new version of an endpoint. */
export interface NewRelease {
  readonly template: TemplateSettings;
  readonly madeAt: number;
  readonly rollbackOf?: number;
}

export interface EndpointStore {
  /** With its first version. */
  create(endpoint: {
    id: string;
    ownerNo: number;
    settings: EndpointSettings;
    template: TemplateSettings;
    createdAt: number;
  }): Promise<Endpoint>;
  /** `release` makes a new version. Any save ends crash-loop pauses. */
  save(no: number, settings: EndpointSettings, release: NewRelease | undefined): Promise<void>;
  remove(no: number, now: number): Promise<void>;
  /** All that are not deleted, or whose jobs or workers have not ended. */
  all(): Promise<Endpoint[]>;
  /** Those of these ids that are there and not deleted. */
  existing(ids: readonly string[]): Promise<string[]>;
  /** Notes how a start went, where the endpoint is of the present version still. */
  noteStart(no: number, note: TriedStart): Promise<void>;
  /** One of its versions, where it is kept. */
  release(no: number, n: number): Promise<Release | undefined>;
}

/** How the last start went: how many have failed in a row. */
export interface StartNote {
  readonly failedStarts: number;
  readonly at: number;
  readonly verdict?: string | undefined;
}

export interface TriedStart extends StartNote {
  /** The endpoint's version then, and the version that was tried: a start that did not fail proves it. */
  readonly present: number;
  readonly tried: number;
  /** It is not tried any more. */
  readonly isHeld: boolean;
}

export interface TemplateStore {
  create(template: { id: string; ownerNo: number; settings: TemplateSettings }): Promise<Template>;
  save(no: number, settings: TemplateSettings): Promise<void>;
  remove(no: number): Promise<void>;
  all(): Promise<Template[]>;
}

export interface VolumeStore {
  create(volume: Omit<Volume, "no">): Promise<Volume>;
  save(volume: Volume): Promise<void>;
  remove(no: number): Promise<void>;
  all(): Promise<Volume[]>;
  existing(ids: readonly string[]): Promise<string[]>;
}

export interface RegistryAuthStore {
  create(auth: Omit<RegistryAuth, "no">): Promise<RegistryAuth>;
  save(auth: RegistryAuth): Promise<void>;
  remove(no: number): Promise<void>;
  all(): Promise<RegistryAuth[]>;
}

/** Where a worker is to be, and what it has there. */
export type Place = Omit<Extract<WorkerChange, { by: "place" }>, "by">;

export interface WorkerStore {
  create(worker: {
    id: string;
    endpointNo: number;
    version: number;
    hostNo: number;
    createdAt: number;
    resources?: Resources;
    /** Why it has to wait for a place, where it has to. */
    throttled?: string;
  }): Promise<Worker>;
  /** One change by the table of a worker's life. False where that does not allow it by now: then nothing is changed. */
  change(no: number, change: WorkerChange): Promise<boolean>;
  /** Gives a worker that waits for one its place; false where it waits no more, or another server decides by now. */
  place(no: number, found: Place): Promise<boolean>;
  /** All that have not ended, and those that ended after `endedSince`. */
  all(endedSince: number): Promise<Worker[]>;
  /** An endpoint's workers, the newest first, also those that ended. */
  ofEndpoint(endpointNo: number, limit: number): Promise<Worker[]>;
  find(id: string): Promise<Worker | undefined>;
  /** Those of these ids whose workers have a secret, and have not ended. */
  existing(ids: readonly string[]): Promise<string[]>;
  forget(endedBefore: number): Promise<void>;
}

export interface User {
  readonly no: number;
  readonly id: string;
  readonly isAdmin: boolean;
  /** The webhook signing secret, sealed. */
  readonly webhookSecret: string;
}

export interface KeyStore {
  users(): Promise<User[]>;
  createUser(user: Omit<User, "no">): Promise<User>;
  keys(): Promise<ApiKey[]>;
  /** Those of these hashes whose keys are valid. */
  existing(hashes: readonly string[]): Promise<string[]>;
  /** Adds a key; a bootstrap key replaces the one before. */
  add(key: { hash: string; ownerNo: number; scope: Scope; prefix: string; isBootstrap: boolean }): Promise<void>;
}

/** One scaling decision, for as long as it stayed the same. */
export interface Decision {
  readonly fromAt: number;
  readonly untilAt: number;
  readonly times: number;
  readonly inputs: string;
  readonly outcome: string;
  readonly reason: string;
}
export interface DecisionStore {
  /** Appends a decision, and closes the one before it (`ended`), where there was one. */
  record(
    endpointNo: number,
    decision: { at: number; inputs: string; outcome: string; reason: string },
    ended: { untilAt: number; times: number } | undefined,
  ): Promise<void>;
  list(endpointNo: number, limit: number): Promise<Decision[]>;
  forget(before: number): Promise<void>;
}

export interface HostStore {
  /** The number of the host with this id, made where it is new. */
  ensure(id: string, now: number): Promise<number>;
}

/** A machine, or a cluster, that runs workers: one server of ours is there. */
export interface Host extends SaidFacts {
  readonly no: number;
  /** When its server last said that it lives. */
  readonly seenAt: number;
}

/** What a server has heard of a worker, for the others. Times are milliseconds. */
export interface Sign {
  readonly workerNo: number;
  readonly seenAt: number;
  readonly busyAt: number;
  readonly polledAt: number;
  readonly slots: number;
}

/** What a server says once a second. */
export interface Beat {
  readonly hostNo: number;
  readonly facts: SaidFacts;
  readonly now: number;
  /** When its host counts as seen. */
  readonly seenAt: number;
  /** The leases it wants to have, or to keep, until then; what it has beside them it gives back. */
  readonly leases: readonly string[];
  readonly untilAt: number;
  readonly signs: readonly Sign[];
}

/** What servers on one database tell each other through it. */
export interface SharedStore {
  /** Says that we live, and resolves with the leases that are ours, and with every host. */
  beat(beat: Beat): Promise<{ leases: ReadonlySet<string>; hosts: Host[] }>;
  /** Gives all leases of a host back, and says that it is gone: it counts as last seen at `seenAt`. */
  leave(hostNo: number, seenAt: number): Promise<void>;
  /** Forgets hosts that were last seen before `before` and have no live worker; what they have counted stays. */
  forgetHosts(before: number): Promise<void>;
  /** Takes up to `count` of the `limit` requests that all servers together may let in within the rate window. */
  grant(name: string, limit: number, count: number, now: number): Promise<number>;
  /** Runs one change of resources at a time, over all servers. */
  exclusively<T>(change: () => Promise<T>): Promise<T>;
  /** The database's clock. */
  time(): Promise<number>;
  /** Where the database's writes are now, for `workersSince`. */
  mark(): Promise<string>;
  /** The workers that were written since the mark was made, but for those that ended before `endedSince`. */
  workersSince(mark: string, endedSince: number): Promise<Worker[]>;
}

/** All stores of one database. */
export interface Stores {
  /** Undefined where one server has the database to itself. */
  readonly shared?: SharedStore;
  readonly jobs: JobStore;
  readonly reader: JobReader;
  readonly tallies: TallyReader;
  readonly chunks: ChunkStore;
  readonly deliveries: DeliveryStore;
  readonly endpoints: EndpointStore;
  readonly templates: TemplateStore;
  readonly volumes: VolumeStore;
  readonly registryAuths: RegistryAuthStore;
  readonly workers: WorkerStore;
  readonly keys: KeyStore;
  readonly decisions: DecisionStore;
  readonly hosts: HostStore;
  /** Resolves when a read has been answered. */
  ping(): Promise<void>;
  close(): Promise<void>;
}
