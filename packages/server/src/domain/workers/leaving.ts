import { limits } from "../../limits/index.js";
import { earliest } from "../earliest.js";
import { type Desire, isReady, isUsable, type ScaleInputs, type WorkerView } from "../scaling/scale-inputs.js";

/** Which workers leave, and how. */
export interface Leaving {
  readonly pause: readonly number[];
  readonly stop: readonly number[];
  readonly close: readonly number[];
  /** All of the above. */
  readonly gone: ReadonlySet<number>;
  readonly reason: string;
  readonly lookAt: number | undefined;
}

/** Workers leave in this order, the longest idle first, but of those not up yet the newest. */
const leavingOrder = ["still stopping", "idle", "not up yet", "busy"] as const;
const useOf = (worker: WorkerView): (typeof leavingOrder)[number] => {
  if (!isReady(worker)) return "not up yet";
  if (worker.held > 0) return "busy";
  return worker.state === "running" ? "still stopping" : "idle";
};
const byUse = (a: WorkerView, b: WorkerView): number => {
  const use = useOf(a);
  const difference = leavingOrder.indexOf(use) - leavingOrder.indexOf(useOf(b));
  return difference || (use === "not up yet" ? b.no - a.no : a.idleSince - b.idleSince);
};

/**
 * The workers of other versions that may leave now. As many stay as are needed until new ones are up. If there is no
 * room or no GPU for a new worker, one old worker at a time makes way, provided that helps. If nothing would help, the
 * old ones keep serving until their idle timeout.
 * Two old workers, both needed, workersMax 3: the third place goes to the first new worker; when it is up, one old
 * worker leaves.
 */
export function outdated(inputs: ScaleInputs, want: number): WorkerView[] {
  const usable = inputs.workers.filter(isUsable);
  const old = usable.filter((worker) => worker.version !== inputs.version).sort(byUse);
  const mine = usable.filter((worker) => worker.version === inputs.version);
  const isKept = isStuck(inputs);
  const unready = old.filter((worker) => !isReady(worker) && !(isKept && worker.state === "starting"));
  const ready = old.filter(isReady);
  const needed = Math.min(ready.length, Math.max(0, want - mine.filter(isReady).length));
  const spare = ready.slice(0, ready.length - needed);
  const going = [...unready, ...(isKept ? [] : spare)];
  if (going.length > 0 || needed === 0) return going;
  const isUnderWay =
    mine.some(({ state }) => state === "starting") ||
    inputs.workers.some(({ state }) => state === "closing" || state === "stopping");
  if (isUnderWay || inputs.failedStarts > 0) return [];
  const isFull = inputs.workers.length >= inputs.settings.workersMax;
  const isShort = mine.some(({ state }) => state === "throttled") && !inputs.fitsWithout([]);
  return isFull || isShort ? makingRoom(ready, inputs.fitsWithout).slice(0, 1) : [];
}

/** Whether a new version has no worker, and would find no place for one even if all old workers left. */
function isStuck({ workers, version, settings, fitsWithout }: ScaleInputs): boolean {
  const usable = workers.filter(isUsable);
  const old = usable.filter((worker) => worker.version !== version);
  const isUp = usable.some((worker) => worker.version === version && worker.state !== "throttled");
  return old.length > 0 && !isUp && usable.length <= settings.workersMax && !fitsWithout(old.map(({ no }) => no));
}

/** The first workers that would have to leave for a new one to find its place; empty if that would not help. */
function makingRoom(workers: readonly WorkerView[], fits: ScaleInputs["fitsWithout"]): readonly WorkerView[] {
  const fitsWithout = (some: readonly WorkerView[]) => fits(some.map(({ no }) => no));
  if (fitsWithout([])) return workers;
  const count = workers.findIndex((_, n) => fitsWithout(workers.slice(0, n + 1))) + 1;
  const enough = workers.slice(0, count);
  return enough.filter((worker) => !fitsWithout(enough.filter((other) => other !== worker)));
}

/** Decides which workers of an endpoint leave. */
export function leave(inputs: ScaleInputs, desire: Desire): Leaving {
  const stop = inputs.workers
    .filter((worker) => worker.state === "closing" && worker.held === 0)
    .map((worker) => worker.no);
  const close: number[] = [];
  const dismiss = (worker: WorkerView) => void (worker.held > 0 ? close : stop).push(worker.no);
  let reason = stop.length > 0 ? "a closed worker has no job left" : "";

  const replaced = outdated(inputs, desire.want);
  for (const worker of replaced) dismiss(worker);
  if (replaced.length > 0) reason = `a new version (${inputs.version}) replaces the existing workers`;

  const live = inputs.workers.filter((worker) => isUsable(worker) && !replaced.includes(worker));
  const { workersMax } = inputs.settings;
  // other endpoints may have what these wait for, and nothing rings when that changes
  const isWaiting = live.some((worker) => worker.version !== inputs.version);
  // old workers that are still needed do not leave for being idle: they leave when replaced
  const current = live.filter((worker) => worker.version === inputs.version).sort(byUse);
  const excess = current.splice(0, Math.max(0, live.length - workersMax));
  for (const worker of excess) dismiss(worker);
  if (excess.length > 0) reason = `workersMax is ${workersMax}`;

  const unplaced = current.filter((worker) => worker.state === "throttled");
  for (const worker of unplaced.slice(0, Math.max(0, current.length - desire.want))) {
    current.splice(current.indexOf(worker), 1);
    dismiss(worker);
    reason = "it is not needed any more";
  }
  const resting = rest(inputs, desire, isStuck(inputs) ? live.filter(isReady).sort(byUse) : current);
  const isPaused = ({ version, isUnfreezable }: WorkerView) =>
    resting.isPause && version === inputs.version && !isUnfreezable;
  for (const worker of resting.going) if (!isPaused(worker)) dismiss(worker);
  const pause = resting.going.filter(isPaused).map((worker) => worker.no);
  const cannotPause = resting.isPause && resting.going.some(({ isUnfreezable }) => isUnfreezable);
  const paused = giveUp(inputs, live.length - excess.length);
  stop.push(...paused.stop);
  return {
    pause,
    stop,
    close,
    gone: new Set([...pause, ...stop, ...close]),
    reason: (cannotPause ? `${resting.reason}; its host cannot freeze it` : resting.reason) || paused.reason || reason,
    lookAt: earliest(resting.lookAt, paused.lookAt, isWaiting ? inputs.now + limits.netMs : undefined),
  };
}

/** Workers whose idle timeout is over: they stop, or with FlashBoot they pause. */
function rest(inputs: ScaleInputs, desire: Desire, current: readonly WorkerView[]) {
  const { settings, now } = inputs;
  const isPause = settings.flashBootType !== "OFF" && settings.type === "QB";
  const keep = Math.max(settings.workersMin, settings.scalerType === "REQUEST_COUNT" ? desire.want : 0);
  const going: WorkerView[] = [];
  let lookAt: number | undefined;
  for (const worker of current) {
    // while jobs wait, an idle worker is about to take one
    if (worker.state !== "idle" || current.length - going.length <= keep || inputs.demand.waiting > 0) break;
    const idleUntil = worker.idleSince + settings.idleTimeout * 1_000;
    if (now < idleUntil) {
      lookAt = idleUntil;
      break;
    }
    going.push(worker);
  }
  const reason = going.length > 0 ? `idle for ${settings.idleTimeout} s` : "";
  return { isPause, going, reason, lookAt };
}

/** Paused workers to stop: of another version, too many, or paused too long. */
function giveUp(inputs: ScaleInputs, live: number) {
  const { settings, now, flashBootMs } = inputs;
  const paused = inputs.workers
    .filter(({ state, held }) => state === "paused" && held === 0) // a worker that got a job finishes it first
    .sort((a, b) => b.idleSince - a.idleSince);
  const useful = paused.filter(({ version }) => version === inputs.version && settings.flashBootType !== "OFF");
  const kept = useful
    .slice(0, Math.max(0, settings.workersMax - live))
    .filter(({ idleSince }) => now < idleSince + flashBootMs);
  const stop = paused.filter((worker) => !kept.includes(worker)).map(({ no }) => no);
  const reason = stop.length > 0 ? "a paused worker gives its memory back" : "";
  return { stop, reason, lookAt: earliest(...kept.map(({ idleSince }) => idleSince + flashBootMs)) };
}
