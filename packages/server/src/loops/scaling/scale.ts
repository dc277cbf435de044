import { setImmediate } from "node:timers/promises";
import { topics } from "../../bell.js";
import { earliest } from "../../domain/earliest.js";
import { type Endpoint, servingVersion } from "../../domain/endpoints/endpoint.js";
import type { ScaleInputs } from "../../domain/scaling/scale-inputs.js";
import { type Plan, plan } from "../../domain/scaling/scaling.js";
import { limits } from "../../limits/index.js";
import type { LiveWorker } from "../../memory/registry.js";
import { scaleInputs } from "../../operations/endpoints/scale-inputs.js";
import { StartRoom } from "../../operations/endpoints/start-room.js";
import type { Needs } from "../../operations/needs.js";
import { barredBy } from "../../operations/usage/quotas.js";
import { makeWay, placeFor, placeThrottled } from "../../operations/workers/place-worker.js";
import { closeWorker, pauseWorker, resumeWorker, stopWorker } from "../../operations/workers/worker-life.js";
import type { Loop } from "../loop.js";
import { DecisionLog } from "./decision-log.js";

type Scaling = Needs<
  "jobs" | "reader" | "tallies" | "decisions" | "clock" | "ids" | "bell" | "registry" | "emit" | "here" | "gate"
>;

const never = Number.POSITIVE_INFINITY;

/** Turns demand into worker rows that say what is wanted. It calls no provider. */
export function scaleLoop(needs: Scaling): Loop {
  const dirty = new Set<number>();
  const dueAt = new Map<number, number>();
  const heard = new Map<number, () => void>();
  const log = new DecisionLog(needs);
  let wake = () => {};

  /** Listens to the demand of every endpoint. */
  function listenToAll(): void {
    for (const { no } of needs.registry.endpoints()) {
      if (heard.has(no)) continue;
      dirty.add(no);
      const listener = () => {
        dirty.add(no);
        wake();
      };
      heard.set(no, needs.bell.on(topics.demand(no), listener));
    }
  }

  /** Forgets endpoints that the registry has forgotten. */
  function forgetGone(): void {
    for (const [no, off] of heard) {
      if (needs.registry.endpointByNo(no)) continue;
      off();
      for (const noted of [heard, log, dueAt, dirty]) noted.delete(no);
    }
  }

  async function look(endpoint: Endpoint, now: number, room: StartRoom): Promise<void> {
    const inputs = await scaleInputs(needs, endpoint, now, room);
    const decided = endpoint.deletedAt === undefined ? heldOr(needs, endpoint, plan(inputs)) : dismissal(inputs);
    await act(needs, endpoint, decided);
    room.take(endpoint, decided.start);
    const noteAt = await log.record(endpoint, inputs, decided);
    // starting workers changes the next decision, before any of them rings
    const lookAt = decided.start + decided.resume.length > 0 ? now : earliest(decided.lookAt, noteAt);
    if (lookAt === undefined) dueAt.delete(endpoint.no);
    else dueAt.set(endpoint.no, lookAt);
  }

  function again({ no, id }: Endpoint, now: number, error: unknown): void {
    dueAt.set(no, now + limits.netMs);
    needs.emit({ type: "server.warning", message: `endpoint ${id} could not be scaled just now`, error });
  }

  return {
    name: "scale",
    topics: ["demand"],
    gapMs: limits.loopGapMs,
    listen(wakeLoop) {
      wake = wakeLoop;
      return () => heard.forEach((off) => void off());
    },
    async tick(now) {
      listenToAll();
      forgetGone();
      for (const [no, at] of dueAt) if (at <= now) dirty.add(no);
      // place waiting workers first: a worker that finds a free place needs no other worker to make way
      const { left, lookInMs } = await placeThrottled(needs);
      const room = new StartRoom(needs);
      for (const [looked, no] of [...dirty].entries()) {
        if ((looked + 1) % limits.triedPerTurn === 0) await setImmediate();
        const endpoint = needs.registry.endpointByNo(no);
        dirty.delete(no);
        // one endpoint's failure must not delay the rest
        if (endpoint) await look(endpoint, now, room).catch((error) => again(endpoint, now, error));
      }
      // what these workers wait for may become free, or they may not be needed any more
      for (const no of left) dueAt.set(no, Math.min(dueAt.get(no) ?? never, now + lookInMs));
      return dueAt.size > 0 ? Math.min(...dueAt.values()) : undefined;
    },
  };
}

/** Adds a note to a decision's reason while workers are not made from the current version. */
function heldOr({ registry }: Needs<"registry">, endpoint: Endpoint, decided: Plan): Plan {
  const { no, version, provenVersion: proven } = endpoint;
  if (servingVersion(endpoint) === version) return decided;
  // of a folder, both versions run the same files, and the earlier one may fail as well by now
  const serves = registry.workersOf(no).some(({ row }) => row.version === proven && row.readyAt !== undefined);
  const meanwhile = serves ? "keeps serving" : "is tried instead";
  return {
    ...decided,
    reason: `version ${version} failed at its start, version ${proven} ${meanwhile}; ${decided.reason}`,
  };
}

/** A deleted endpoint's workers all stop at once. */
const dismissal = (inputs: ScaleInputs): Plan => ({
  start: 0,
  resume: [],
  pause: [],
  close: [],
  stop: inputs.workers.filter((worker) => worker.state !== "stopping").map((worker) => worker.no),
  outcome: "stop all",
  reason: "the endpoint is deleted",
  lookAt: undefined,
});

async function act(needs: Scaling, endpoint: Endpoint, decided: Plan): Promise<void> {
  const { reason } = decided;
  // resume and start first, because jobs are waiting for these workers
  await each(needs, decided.resume, (worker) => resume(needs, endpoint, worker, reason));
  for (let n = 0; n < decided.start; n++) await start(needs, endpoint);
  if (decided.start > 0) needs.bell.ring("workers");
  await each(needs, decided.pause, (worker) => pauseWorker(needs, worker, reason));
  await each(needs, decided.close, (worker) => closeWorker(needs, worker, reason));
  await each(needs, decided.stop, (worker) => dismiss(needs, endpoint, worker, whyStopped(worker, reason)));
}

/** Resumes a worker, unless its user's terms bar that: then a new one waits in its place, and says why. */
async function resume(needs: Scaling, endpoint: Endpoint, worker: LiveWorker, why: string): Promise<void> {
  const { no, resources } = worker.row;
  const isBarred = resources !== undefined && barredBy(needs, endpoint, resources) !== undefined;
  // what it holds already must end
  if (isBarred && (await heldNow(needs, endpoint, no)) === 0) await start(needs, endpoint);
  else await resumeWorker(needs, worker, why);
}

/** Stops a worker. If it got work after the decision, it finishes that first: it is closed, and stopped when idle. */
async function dismiss(needs: Scaling, endpoint: Endpoint, worker: LiveWorker, why: string): Promise<void> {
  const { row } = worker;
  if (row.wanted === "running" && row.readyAt !== undefined && endpoint.deletedAt === undefined) {
    const close = { by: "close", closedAt: needs.clock.now(), why } as const;
    if (!(await needs.registry.changeWorker(worker, close))) return; // another server has decided about it
    if ((await heldNow(needs, endpoint, row.no)) > 0) {
      needs.bell.ring(topics.demand(endpoint.no));
      return;
    }
  }
  await stopWorker(needs, worker, why, needs.here.stopGraceMs);
}

/** How many jobs or requests a worker holds. Once it is closed, this only falls. */
const heldNow = async (needs: Scaling, { settings }: Endpoint, no: number): Promise<number> =>
  settings.type === "LB" ? needs.gate.heldBy(no) : (await needs.reader.heldBy(no)).length;

/** A worker that was closed first is stopped for the same reason. */
const whyStopped = ({ row }: LiveWorker, reason: string): string =>
  row.wanted === "closed" ? (row.why ?? reason) : reason;

async function each(needs: Scaling, nos: readonly number[], change: (worker: LiveWorker) => Promise<void>) {
  for (const no of nos) {
    const worker = needs.registry.workerByNo(no);
    if (worker) await change(worker);
  }
}

/** Makes a worker's row on a host with the resources it needs; if there is none, the worker waits for a place. */
async function start(needs: Scaling, endpoint: Endpoint): Promise<void> {
  const version = servingVersion(endpoint);
  const found = await placeFor(needs, endpoint, version);
  const isPlaced = "hostNo" in found;
  const made = {
    id: needs.ids.resource(),
    endpointNo: endpoint.no,
    version,
    hostNo: isPlaced ? found.hostNo : needs.here.hostNo,
    createdAt: needs.clock.now(),
  };
  await needs.registry.createWorker({
    ...made,
    ...(isPlaced ? { resources: found.resources } : { throttled: found.lacks }),
  });
  if (!isPlaced) await makeWay(needs, found.giveWay);
}
