import { type ApiKey, isVisible } from "../../domain/access/key.js";
import { type Endpoint, servingVersion } from "../../domain/endpoints/endpoint.js";
import { type ColdStart, coldStart, coldStartSteps, percentiles } from "../../domain/workers/cold-start.js";
import { namedFor } from "../../domain/workers/holders.js";
import { isFrozen, type Worker, workerState } from "../../domain/workers/worker.js";
import { Refusal } from "../../errors.js";
import { limits } from "../../limits/index.js";
import { startOf } from "../../memory/live-workers.js";
import type { Needs } from "../needs.js";
import { iso } from "../show-resources.js";
import { stillStopping } from "./still-stopping.js";

type Showing = Needs<"registry" | "tallies" | "reader">;

/** What a worker has to do now. */
interface Load {
  /** The jobs that it holds. */
  readonly held: number;
  /** Whether it still runs a job that was stopped. */
  readonly isStopping: boolean;
}

/** A worker's state as people are shown it, with its beginning and its reason. */
function stateOf(row: Worker, endpoint: Endpoint, { held, isStopping }: Load, busyAt: number) {
  const state = workerState(row, held);
  const upAt = row.readyAt ?? row.createdAt;
  const say = (shown: string, since: number, why: string | undefined) => ({ state: shown, since, why });
  if (state === "ended") {
    // if we stopped the worker, its exit code is not the reason
    const why = row.stopAt === undefined ? (row.exit?.note ?? row.why) : (row.why ?? row.exit?.note);
    return say("ended", row.endedAt ?? upAt, why);
  }
  if (state === "stopping") return say("stopping", row.stopAt ?? upAt, row.why);
  if (row.trouble) return say("unhealthy", row.trouble.at, row.trouble.why);
  if (state === "throttled") return say("throttled", row.throttledAt ?? upAt, row.why);
  const serving = servingVersion(endpoint);
  if (row.version !== serving) {
    const why = `version ${serving} replaces it${state === "closing" ? ", when its last job is over" : ""}`;
    return say("outdated", row.closedAt ?? upAt, why);
  }
  if (state === "closing") return say("closing", row.closedAt ?? upAt, row.why);
  if (state === "paused") return say("paused", row.pausedAt ?? upAt, row.why);
  if (state === "starting") return say("initializing", row.placedAt ?? row.createdAt, undefined);
  if (isFrozen(row)) return say("initializing", busyAt, row.why);
  if (isStopping) return say("running", Math.max(upAt, busyAt), "its handler still runs a job that was stopped");
  // a worker that runs jobs or waits for them needs no reason
  return say(state, Math.max(upAt, busyAt), undefined);
}

const phases = [
  ["createdAt", "asked for"],
  ["throttledAt", "waiting for a place"],
  ["placedAt", "placed"],
  ["imageAt", "image ready"],
  ["madeAt", "container created"],
  ["startedAt", "process started"],
  ["readyAt", "first take"],
  ["outputAt", "first output"],
  ["pausedAt", "paused"],
  ["resumedAt", "resumed"],
  ["closedAt", "closed"],
  ["stopAt", "asked to stop"],
  ["endedAt", "ended"],
] as const satisfies readonly (readonly [keyof Worker, string])[];

/** What happened to a worker, in order. */
const timeline = (row: Worker) =>
  phases
    .flatMap(([field, phase]) => (row[field] === undefined ? [] : [{ phase, at: row[field] }]))
    .sort((a, b) => a.at - b.at)
    .map(({ phase, at }) => ({ phase, at: iso(at), afterMs: Math.max(0, at - row.createdAt) }));

const shownColdStart = ({ steps, totalMs, outputMs }: ColdStart) => ({
  ...Object.fromEntries(
    coldStartSteps.flatMap((step) => (steps[step] === undefined ? [] : [[`${step}Ms`, steps[step]]])),
  ),
  ...(totalMs === undefined ? {} : { totalMs }),
  ...(outputMs === undefined ? {} : { outputMs }),
});

/** A worker as callers see it; absent fields are left out. */
function view({ registry }: Needs<"registry">, { scope }: ApiKey, endpoint: Endpoint, row: Worker, load: Load) {
  const live = registry.workerByNo(row.no);
  const start = live && startOf(live);
  const { state, since, why } = stateOf(row, endpoint, load, live?.busyAt ?? 0);
  const { gpus = [], cpus, memoryMib } = row.resources ?? {};
  const isGone = row.wanted === "stopped" || row.endedAt !== undefined;
  return {
    id: row.id,
    endpointId: endpoint.id,
    version: row.version,
    desiredStatus: isGone ? "EXITED" : "RUNNING",
    state,
    since: iso(since),
    ...(why === undefined || why === "" ? {} : { why: namedFor(scope, why) }),
    ...(start === undefined ? {} : { doing: start.doing }),
    jobs: load.held,
    gpus: gpus.map(({ id, name }) => ({ id, name })),
    ...(cpus === undefined ? {} : { vcpuCount: cpus }),
    ...(memoryMib === undefined ? {} : { memoryInGb: memoryMib / 1_024 }),
    ...(isGone ? {} : reachedAt(row.handle)),
    ...(row.startedAt === undefined ? {} : { lastStartedAt: iso(row.startedAt) }),
    coldStart: shownColdStart(coldStart(row)),
    timeline: timeline(row),
    ...(row.exit === undefined || row.endedAt === undefined ? {} : { exit: exitOf(row.exit) }),
  };
}

/**
 * How to reach the ports of a worker with a network of its own: by its address, and by the ports published for it
 * (contract of pods: portMappings, publicIp).
 */
export function reachedAt(handle: Worker["handle"]) {
  const { address, published, publishedAt } = handle?.network ?? {};
  const isAll = publishedAt === "0.0.0.0" || publishedAt === "::";
  return {
    ...(address === undefined ? {} : { privateIp: address }),
    ...(published === undefined ? {} : { portMappings: published }),
    ...(publishedAt === undefined || isAll ? {} : { publicIp: publishedAt }),
  };
}

const exitOf = ({ code, signal, note, cause }: NonNullable<Worker["exit"]>) => ({
  ...(code === undefined ? {} : { code }),
  ...(signal === undefined ? {} : { signal }),
  ...(cause === undefined ? {} : { cause }),
  ...(note === undefined ? {} : { note }),
});

/** An endpoint's workers, newest first; on request also workers that ended in the last 24 hours. */
export async function showWorkers(
  needs: Showing,
  caller: ApiKey,
  endpoint: Endpoint,
  options: { ended?: boolean } = {},
) {
  const held = await needs.tallies.holdings(endpoint.no);
  const rows = options.ended
    ? await needs.registry.workersListed(endpoint.no, limits.workersListedMax)
    : needs.registry
        .workersOf(endpoint.no)
        .map(({ row }) => row)
        .toReversed();
  const load = await loadsOf(needs, rows, held);
  return rows.map((row) => view(needs, caller, endpoint, row, load(row)));
}

/** One worker with its timeline, until 24 hours after its end. Another user's is refused like an unknown one. */
export async function showWorker(needs: Showing, caller: ApiKey, workerId: string) {
  const { row, endpoint } = await ownWorker(needs, caller, workerId);
  const load = await loadsOf(needs, [row], await needs.tallies.holdings(endpoint.no));
  return view(needs, caller, endpoint, row, load(row));
}

async function loadsOf(needs: Showing, rows: readonly Worker[], held: ReadonlyMap<number, number>) {
  const stopping = await stillStopping(needs, rows, held);
  return ({ no }: Worker): Load => ({ held: held.get(no) ?? 0, isStopping: stopping.has(no) });
}

const isWorkerId = /^[a-z0-9]{14}$/;

/** A worker that a key may see, with its endpoint. */
export async function ownWorker({ registry }: Needs<"registry">, caller: ApiKey, workerId: string) {
  // a database may reject a malformed id instead of not finding it
  const listed = async () => (isWorkerId.test(workerId) ? registry.workerListed(workerId) : undefined);
  const row = registry.worker(workerId)?.row ?? (await listed());
  const endpoint = row && registry.endpointByNo(row.endpointNo);
  if (!row || !isVisible(caller, endpoint))
    throw new Refusal("NOT_FOUND", `There is no worker '${workerId.slice(0, 80)}' for this key.`);
  return { row, endpoint };
}

/**
 * How an endpoint's workers started: percentiles of each step over the workers whose rows are kept, in milliseconds.
 */
export async function showColdStarts({ registry }: Needs<"registry">, endpoint: Endpoint) {
  const rows = await registry.workersListed(endpoint.no, limits.workersListedMax);
  const starts = rows.filter(({ readyAt }) => readyAt !== undefined).map(coldStart);
  const of = (name: string, values: readonly (number | undefined)[]) => {
    const found = percentiles(values.filter((value) => value !== undefined));
    return found ? [[name, found] as const] : [];
  };
  return {
    starts: starts.length,
    ...Object.fromEntries([
      ...of(
        "totalMs",
        starts.map(({ totalMs }) => totalMs),
      ),
      ...coldStartSteps.flatMap((step) =>
        of(
          `${step}Ms`,
          starts.map(({ steps }) => steps[step]),
        ),
      ),
      ...of(
        "outputMs",
        starts.map(({ outputMs }) => outputMs),
      ),
    ]),
  };
}
