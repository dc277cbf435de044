import type { Endpoint } from "../../domain/endpoints/endpoint.js";
import { type Health, healthPauseMs, nextHealth, type PingAnswer, unknownHealth } from "../../domain/workers/health.js";
import { isFrozen, type Worker } from "../../domain/workers/worker.js";
import { limits } from "../../limits/index.js";
import type { LiveWorker } from "../../memory/registry.js";
import type { Needs } from "../../operations/needs.js";
import { dialled } from "../../operations/workers/find-worker.js";
import { hearHealth, judgeHealth } from "../../operations/workers/hear-health.js";
import { resumeWorker } from "../../operations/workers/worker-life.js";
import type { Loop } from "../loop.js";

export interface PollOptions {
  /** `GET /ping`. */
  readonly ping: (worker: Worker) => Promise<PingAnswer>;
  /** Called when a worker has ended: nothing is sent to it any more. */
  readonly forget: (workerNo: number) => void;
}

type Polling = Needs<"gate" | "registry" | "clock" | "bell" | "emit" | "here" | "jobs" | "reader">;

interface Known {
  health: Health;
  isAsking: boolean;
  dueAt: number;
}

/** Polls the health of load-balanced endpoints' workers. Every server polls the workers that it may dial. */
export function pollHealthLoop(needs: Polling, { ping, forget }: PollOptions): Loop {
  const known = new Map<number, Known>();
  let wake = () => {};

  function begin(worker: LiveWorker, each: Known): void {
    each.isAsking = true;
    void ask(worker, each)
      .catch((error) =>
        needs.emit({ type: "server.warning", message: "a worker's health could not be recorded", error }),
      )
      .finally(() => {
        each.isAsking = false;
        wake();
      });
  }

  async function ask(worker: LiveWorker, each: Known): Promise<void> {
    const answer = await ping(worker.row);
    each.health = nextHealth(each.health, answer, needs.clock.now());
    each.dueAt = needs.clock.now() + healthPauseMs(each.health);
    if (known.get(worker.row.no) === each) await hearHealth(needs, worker, each.health);
  }

  /** Does what a worker needs now; resolves with when to look next. */
  async function look(worker: LiveWorker, now: number): Promise<number | undefined> {
    const { row } = worker;
    if (!dialled(row, needs.here.hostNo) || row.startedAt === undefined || row.wanted === "paused" || isFrozen(row)) {
      needs.gate.shut(row.no);
      // it got a request just as it was to be paused
      if (row.wanted === "paused" && needs.gate.heldBy(row.no) > 0)
        await resumeWorker(needs, worker, "it has a request");
      return undefined;
    }
    const each = known.get(row.no) ?? { health: unknownHealth, isAsking: false, dueAt: now };
    known.set(row.no, each);
    const judgedAt = await judgeHealth(needs, worker, each.health);
    if (each.isAsking) return judgedAt;
    if (now >= each.dueAt || needs.gate.wasSuspected(row.no)) {
      begin(worker, each);
      return judgedAt;
    }
    return Math.min(each.dueAt, judgedAt ?? Number.POSITIVE_INFINITY);
  }

  return {
    name: "poll-health",
    topics: ["workers", "registry"],
    gapMs: limits.loopGapMsMin,
    listen(wakeLoop) {
      wake = wakeLoop;
      needs.gate.onSuspect = wakeLoop;
      return () => void (needs.gate.onSuspect = () => {});
    },
    async tick(now) {
      for (const { no, deletedAt } of needs.registry.endpoints()) if (deletedAt !== undefined) needs.gate.close(no);
      const live = balanced(needs.registry.endpoints()).flatMap(({ no }) => needs.registry.workersOf(no));
      const nos = new Set(live.map(({ row }) => row.no));
      for (const no of known.keys()) {
        if (nos.has(no)) continue;
        known.delete(no);
        needs.gate.forget(no);
        forget(no);
      }
      const looks = await Promise.all(live.map((worker) => look(worker, now)));
      const next = Math.min(...looks.map((at) => at ?? Number.POSITIVE_INFINITY));
      return next < Number.POSITIVE_INFINITY ? next : undefined;
    },
  };
}

const balanced = (endpoints: readonly Endpoint[]) => endpoints.filter(({ settings }) => settings.type === "LB");
