import type { Endpoint, EndpointSettings } from "../../packages/server/src/domain/endpoints/endpoint.js";
import { isFrozen, isThrottled, type Worker } from "../../packages/server/src/domain/workers/worker.js";
import { changed, type WorkerChange } from "../../packages/server/src/domain/workers/worker-life.js";
import type { Taken, TriedStart } from "../../packages/server/src/store/index.js";
import { expiryOf, type Known } from "./known.js";

type Mutable<T> = { -readonly [Name in keyof T]: T[Name] };

/** The state of an endpoint according to the commits so far. */
export interface KnownEndpoint {
  readonly no: number;
  readonly id: string;
  settings: EndpointSettings;
  /** The settings before the last save, and the time of that save. */
  former: EndpointSettings;
  savedAt: number;
  version: number;
  provenVersion: number;
  /** When its version was held because three starts had failed; undefined if it is not. */
  heldAt: number | undefined;
  isDeleted: boolean;
}

export type KnownRow = Mutable<Worker>;

/** The facts by which the fleet is judged. */
export interface Judge {
  readonly jobs: ReadonlyMap<string, Known>;
  readonly now: () => number;
  /** Whether the simulation has frozen this worker's processes. */
  isPaused(workerId: string): boolean;
  /** When the loss of a GPU became known. */
  gpuLostAt(id: string): number | undefined;
  /** Since when a server has been running all its loops. */
  servedSince(): number;
  note(line: string): void;
  broken(rule: string, sentence: string): void;
}

/** Whether a worker has not ended, and may have jobs. */
export const isOpen = (row: KnownRow): boolean => row.endedAt === undefined && row.wanted === "running";
const isUp = (row: KnownRow): boolean => isOpen(row) && row.readyAt !== undefined && !isThrottled(row);

/** The version that workers must have: the previous one if the present one never comes up. */
export const workingVersion = ({ heldAt, version, provenVersion }: KnownEndpoint): number =>
  heldAt !== undefined && provenVersion > 0 ? provenVersion : version;

/** Whether it is neither starting nor stopping: it waits for a place, or is frozen. */
const isResting = (row: KnownRow): boolean => row.wanted === "paused" || (isOpen(row) && isThrottled(row));

/** Whether all starts of this version fail. */
export const isBad = ({ settings }: KnownEndpoint): boolean => settings.env.FAILS !== undefined;

/** The time within which the loss of a GPU takes effect; the real server also polls for it. */
const noticeMs = 900;

/** Reads every commit about endpoints and workers as it happens, and reports each one that breaks a rule. */
export class Fleet {
  readonly #judge: Judge;
  readonly endpoints = new Map<number, KnownEndpoint>();
  readonly workers = new Map<number, KnownRow>();

  constructor(judge: Judge) {
    this.#judge = judge;
  }

  workersOf = (no: number): KnownRow[] =>
    [...this.workers.values()].filter((row) => row.endpointNo === no && row.endedAt === undefined);

  isHeld = ({ heldAt }: KnownEndpoint): boolean => heldAt !== undefined;

  /** One answered call of a store. */
  // biome-ignore lint/suspicious/noExplicitAny: each verb has its own arguments and result
  saw = (verb: string, args: any[], result: any): void => this.#readers[verb]?.(args, result);

  // biome-ignore lint/suspicious/noExplicitAny: as above
  readonly #readers: Readonly<Record<string, (args: any[], result: any) => void>> = {
    "endpoints.create": (_, made: Endpoint) => {
      const { no, id, settings, version, provenVersion } = made;
      const rest = { former: settings, savedAt: this.#judge.now(), heldAt: undefined, isDeleted: false };
      this.endpoints.set(no, { no, id, settings, version, provenVersion, ...rest });
    },
    "endpoints.save": ([no, settings, release]) => {
      const endpoint = this.endpoints.get(no) as KnownEndpoint;
      const version = endpoint.version + (release ? 1 : 0);
      if (release) this.#judge.note(`endpoint ${no} has version ${version}`);
      const { settings: former } = endpoint;
      const savedAt = this.#judge.now();
      Object.assign(endpoint, { settings, former, savedAt, version, heldAt: undefined });
    },
    "endpoints.remove": ([no]) => void Object.assign(this.endpoints.get(no) as KnownEndpoint, { isDeleted: true }),
    "endpoints.noteStart": ([no, note]) => this.#started(no, note),
    "jobs.take": (_, { jobs }: Taken) => {
      for (const { id, workerNo } of jobs) this.#taken(id, this.workers.get(workerNo));
    },
    "workers.create": (_, row: Worker) => void this.workers.set(row.no, { ...row }),
    "workers.place": ([no, found], isPlaced) => void (isPlaced && this.#changed(no, { by: "place", ...found })),
    "workers.change": ([no, change], isChanged) => void (isChanged && this.#changed(no, change)),
  };

  #started(no: number, { failedStarts, present, tried, isHeld }: TriedStart): void {
    const endpoint = this.endpoints.get(no) as KnownEndpoint;
    if (endpoint.version !== present) return;
    if (failedStarts === 0) endpoint.provenVersion = Math.max(endpoint.provenVersion, tried);
    if (!isHeld) return;
    if (endpoint.heldAt === undefined) this.#judge.note(`version ${present} of endpoint ${no} is held`);
    endpoint.heldAt ??= this.#judge.now();
  }

  /** A worker whose GPU is lost gets no job, except in the moment before the loss is noticed. */
  #taken(jobId: string, row: KnownRow | undefined): void {
    const { gpuLostAt, servedSince, now, broken } = this.#judge;
    for (const { id } of row?.resources?.gpus ?? []) {
      const lostAt = gpuLostAt(id);
      if (lostAt !== undefined && now() - Math.max(lostAt, servedSince()) > noticeMs)
        broken("a worker without its GPU gets no job", `${jobId} was given to ${row?.id}, which lost ${id}`);
    }
  }

  #changed(no: number, change: WorkerChange): void {
    const row = this.workers.get(no);
    if (!row) return;
    const before = { ...row };
    Object.assign(row, changed(row, change));
    const { note, broken, isPaused } = this.#judge;
    if (change.by === "place") note(`${row.id} has a place`);
    if ("why" in change) note(`${row.id}: ${change.why}`);
    if ("killAt" in change && row.wanted === "paused" && (isPaused(row.id) || isFrozen(before)))
      broken("a frozen worker is not judged", `${row.id} is to be killed while it is frozen`);
    const goes = change.by === "close" || change.by === "stop";
    if (goes && isUp(before)) this.#dismissed(before, change.why);
  }

  /** A release may stop an old worker only if it is not needed, or to make room for a new one. */
  #dismissed(row: KnownRow, why: string): void {
    const endpoint = this.endpoints.get(row.endpointNo) as KnownEndpoint;
    const { now, broken } = this.#judge;
    const isCurrent = row.version === workingVersion(endpoint);
    if (endpoint.isDeleted || !/replaces|paused|idle|not needed/.test(why)) return;
    const isRelease = why.includes("replaces");
    if (isRelease && isCurrent && endpoint.heldAt !== undefined && endpoint.heldAt < now())
      broken("a held version replaces no worker", `${row.id} is stopped: ${why}`);
    if (isCurrent || (!isRelease && this.isHeld(endpoint))) return;
    const need = Math.min(this.#need(endpoint, endpoint.settings), this.#need(endpoint, this.#formerOf(endpoint)));
    const up = this.workersOf(endpoint.no).filter(isUp).length;
    // If there is no room for a new worker, a needed old one may make room while no other worker starts or stops.
    const rows = this.workersOf(endpoint.no);
    const isFull =
      rows.length >= endpoint.settings.workersMax || rows.some((other) => isOpen(other) && isThrottled(other));
    const isUnderWay = rows.some((other) => other.no !== row.no && !isUp(other) && !isResting(other));
    if (up < need && !(isFull && !isUnderWay))
      broken("a release leaves enough workers", `${up} of ${need} are left when ${row.id} is stopped: ${why}`);
  }

  #formerOf = (endpoint: KnownEndpoint) =>
    endpoint.savedAt === this.#judge.now() ? endpoint.former : endpoint.settings;

  /** The least number of workers that the demand requires, by the state before this moment. */
  #need(endpoint: KnownEndpoint, { scalerType, scalerValue, workersMin, workersMax }: EndpointSettings): number {
    const now = this.#judge.now();
    let waiting = 0;
    let running = 0;
    for (const job of this.#judge.jobs.values()) {
      if (job.endpointNo !== endpoint.no || job.gone || job.vanished || job.movedAt >= now) continue;
      if (isWaiting(job, now)) waiting++;
      else if (job.status === "IN_PROGRESS") running++;
    }
    const some = scalerType === "REQUEST_COUNT" ? Math.ceil((waiting + running) / scalerValue) : Math.min(1, waiting);
    return Math.min(workersMax, Math.max(workersMin, some));
  }
}

/** Whether a job waits for a worker, and may cause one to start. */
export const isWaiting = (job: Known, now: number): boolean =>
  job.status === "IN_QUEUE" && !job.gone && !job.vanished && expiryOf(job) > now && !job.submitted.lowPriority;
