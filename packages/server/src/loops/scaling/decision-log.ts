import type { Endpoint } from "../../domain/endpoints/endpoint.js";
import type { ScaleInputs } from "../../domain/scaling/scale-inputs.js";
import type { Plan } from "../../domain/scaling/scaling.js";
import { limits } from "../../limits/index.js";
import type { Needs } from "../../operations/needs.js";

/** The decision that was recorded last, which goes on. */
interface Last {
  readonly outcome: string;
  readonly reason: string;
  /** The demand and the workers that it was recorded with. */
  readonly seen: string;
  untilAt: number;
  times: number;
}

/** What is remembered of one endpoint. */
interface History {
  last?: Last;
  /** How many more changes of the demand alone may be recorded now, and since when that holds. */
  budget: number;
  budgetAt: number;
  /** Decisions not stored yet, oldest first, because writing them failed. */
  unstored: (() => Promise<void>)[];
}

/** The scaler's record of what it decided: "why did it (not) scale?", and what waited and ran meanwhile. */
export class DecisionLog {
  readonly #needs: Needs<"decisions" | "emit">;
  readonly #byEndpoint = new Map<number, History>();

  constructor(needs: Needs<"decisions" | "emit">) {
    this.#needs = needs;
  }

  /**
   * Records a decision if its outcome or reason differs from the one before. Of the same decision with another demand
   * or other workers it records a few at once and then one every {@link limits.decisionNoteMs}. Resolves with the time
   * at which a change that was left out now may be recorded.
   */
  async record(endpoint: Endpoint, inputs: ScaleInputs, decided: Plan): Promise<number | undefined> {
    const { outcome, reason } = decided;
    const history = this.#of(endpoint.no, inputs.now);
    const { last } = history;
    const seen = seenIn(inputs);
    const isSame = last?.outcome === outcome && last.reason === reason;
    const isLeftOut = isSame && last.seen !== seen && history.budget < 1;
    if (isSame && (last.seen === seen || isLeftOut)) {
      last.times++;
      last.untilAt = inputs.now;
    } else {
      if (isSame) history.budget--;
      this.#append(endpoint, inputs, decided, { outcome, reason, seen, untilAt: inputs.now, times: 1 });
    }
    await store(history);
    return isLeftOut ? history.budgetAt + limits.decisionNoteMs : undefined;
  }

  /** Forgets an endpoint. */
  delete(endpointNo: number): void {
    this.#byEndpoint.delete(endpointNo);
  }

  #of(endpointNo: number, now: number): History {
    const history = this.#byEndpoint.get(endpointNo) ?? {
      budget: limits.decisionsNotedAtOnce,
      budgetAt: now,
      unstored: [],
    };
    this.#byEndpoint.set(endpointNo, history);
    const more = Math.floor((now - history.budgetAt) / limits.decisionNoteMs);
    if (more > 0) {
      history.budget = Math.min(limits.decisionsNotedAtOnce, history.budget + more);
      history.budgetAt += more * limits.decisionNoteMs;
    }
    return history;
  }

  #append({ no, id }: Endpoint, inputs: ScaleInputs, decided: Plan, present: Last): void {
    const { outcome, reason, start, resume, pause, close, stop } = decided;
    const history = this.#of(no, inputs.now);
    const ended = history.last;
    history.last = present;
    history.unstored = history.unstored.slice(-limits.decisionsUnstoredMax);
    const decision = { at: inputs.now, inputs: shownOf(inputs), outcome, reason };
    history.unstored.push(() => this.#needs.decisions.record({ endpointNo: no, decision, ...(ended && { ended }) }));
    const changes = start + resume.length + pause.length + close.length + stop.length > 0;
    if (changes) this.#needs.emit({ type: "endpoint.scaled", endpointId: id, outcome, reason });
  }
}

const statesOf = ({ workers }: ScaleInputs): string[] => workers.map(({ state }) => state);

const seenIn = (inputs: ScaleInputs): string =>
  `${inputs.demand.waiting} ${inputs.demand.running} ${statesOf(inputs).sort()}`;

function shownOf(inputs: ScaleInputs): string {
  const { settings, demand, slots, failedStarts } = inputs;
  const { scalerType, scalerValue, workersMin, workersMax, idleTimeout } = settings;
  const set = { scalerType, scalerValue, workersMin, workersMax, idleTimeout };
  return JSON.stringify({ ...demand, ...set, workers: statesOf(inputs), slots, failedStarts });
}

/** Stores decisions in order. A decision that cannot be stored now is stored after the next look. */
async function store({ unstored }: History): Promise<void> {
  for (let next = unstored[0]; next; next = unstored[0]) {
    await next();
    unstored.shift();
  }
}
