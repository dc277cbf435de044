import { topics } from "../bell.js";
import type { Endpoint } from "../domain/endpoint.js";
import { chooseHost } from "../domain/host.js";
import { type Plan, plan, type ScaleInputs } from "../domain/scaling.js";
import { workerState } from "../domain/worker.js";
import { limits } from "../limits.js";
import type { Needs } from "../operations/needs.js";
import { liveHosts, obstacle } from "../operations/read-job.js";
import { closeWorker, stopWorker } from "../operations/worker-life.js";
import type { Loop } from "./loop.js";

type Scaling = Needs<
  "jobs" | "reader" | "tallies" | "decisions" | "clock" | "ids" | "bell" | "registry" | "emit" | "place"
>;

interface Last {
  readonly outcome: string;
  readonly reason: string;
  untilAt: number;
  times: number;
}

/** Demand → desired → plan → worker rows that say what is wanted. It calls no provider. */
export function scaleLoop(needs: Scaling): Loop {
  const dirty = new Set<number>();
  const dueAt = new Map<number, number>();
  const heard = new Map<number, () => void>();
  const last = new Map<number, Last>();
  let wake = () => {};

  /** Hears the demand of every endpoint there is. */
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

  async function look(endpoint: Endpoint, now: number): Promise<void> {
    const inputs = await scaleInputs(needs, endpoint, now);
    const decided = endpoint.deletedAt === undefined ? plan(inputs) : dismissal(inputs);
    await act(needs, endpoint, decided);
    await record(needs, last, endpoint, inputs, decided);
    // what was started changes what comes next, before any of it rings
    const lookAt = decided.start > 0 ? now : decided.lookAt;
    if (lookAt === undefined) dueAt.delete(endpoint.no);
    else dueAt.set(endpoint.no, lookAt);
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
      for (const [no, at] of dueAt) if (at <= now) dirty.add(no);
      const nos = [...dirty];
      dirty.clear();
      for (const no of nos) {
        const endpoint = needs.registry.endpointByNo(no);
        if (endpoint) await look(endpoint, now);
      }
      return dueAt.size > 0 ? Math.min(...dueAt.values()) : undefined;
    },
  };
}

async function scaleInputs(needs: Scaling, endpoint: Endpoint, now: number): Promise<ScaleInputs> {
  const [tally, oldestAt, held] = [
    await needs.tallies.tally(endpoint.no),
    await needs.tallies.oldestWaiting(endpoint.no),
    await needs.tallies.holdings(endpoint.no),
  ];
  const workers = needs.registry.workersOf(endpoint.no).map(({ row, busyAt }) => ({
    no: row.no,
    state: workerState(row, held.get(row.no) ?? 0),
    held: held.get(row.no) ?? 0,
    version: row.version,
    idleSince: Math.max(busyAt, row.readyAt ?? row.createdAt),
  }));
  const { waiting, waitingNormal, running } = tally;
  const { settings, version, failedStarts, failedAt } = endpoint;
  const impossible = obstacle(needs, endpoint) !== undefined;
  return {
    settings: impossible ? { ...settings, workersMax: 0, workersMin: 0 } : settings,
    version,
    demand: { waiting, waitingNormal, running, oldestAt },
    workers,
    slots: needs.registry.slots(endpoint),
    failedStarts,
    failedAt,
    now,
  };
}

/** A deleted endpoint's workers all stop at once. */
const dismissal = (inputs: ScaleInputs): Plan => ({
  start: 0,
  close: [],
  stop: inputs.workers.filter((worker) => worker.state !== "stopping").map((worker) => worker.no),
  outcome: "stop all",
  reason: "the endpoint is deleted",
  lookAt: undefined,
});

async function act(needs: Scaling, endpoint: Endpoint, decided: Plan): Promise<void> {
  for (let n = 0; n < decided.start; n++) {
    const hostNo = chooseHost(liveHosts(needs), endpoint.settings.locations) ?? needs.place.hostNo;
    const made = {
      id: needs.ids.resource(),
      endpointNo: endpoint.no,
      version: endpoint.version,
      hostNo,
    };
    await needs.registry.createWorker({ ...made, createdAt: needs.clock.now() });
  }
  if (decided.start > 0) needs.bell.ring("workers");
  for (const no of decided.close) {
    const worker = needs.registry.workerByNo(no);
    if (worker) await closeWorker(needs, worker, decided.reason);
  }
  for (const no of decided.stop) {
    const worker = needs.registry.workerByNo(no);
    if (worker) await stopWorker(needs, worker, decided.reason, needs.place.stopGraceMs);
  }
}

/** A decision is kept when its outcome or its reason differs from the one before: "why did it (not) scale?" */
async function record(needs: Scaling, last: Map<number, Last>, endpoint: Endpoint, inputs: ScaleInputs, decided: Plan) {
  const { outcome, reason } = decided;
  const before = last.get(endpoint.no);
  if (before && before.outcome === outcome && before.reason === reason) {
    before.times++;
    before.untilAt = inputs.now;
    return;
  }
  last.set(endpoint.no, { outcome, reason, untilAt: inputs.now, times: 1 });
  const { settings, demand, workers, slots, failedStarts } = inputs;
  const { scalerType, scalerValue, workersMin, workersMax, idleTimeout } = settings;
  const states = workers.map((worker) => worker.state);
  const shown = {
    ...demand,
    scalerType,
    scalerValue,
    workersMin,
    workersMax,
    idleTimeout,
    workers: states,
    slots,
    failedStarts,
  };
  const decision = { at: inputs.now, inputs: JSON.stringify(shown), outcome, reason };
  await needs.decisions.record(endpoint.no, decision, before);
  const changes = decided.start + decided.stop.length + decided.close.length > 0;
  if (changes) needs.emit({ type: "endpoint.scaled", endpointId: endpoint.id, outcome, reason });
}
