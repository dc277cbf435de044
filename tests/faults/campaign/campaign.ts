import { setTimeout as sleep } from "node:timers/promises";
import { until } from "../../harness.js";
import { ActLog, type ActName, actNames } from "../acts/acts.js";
import { Villain } from "../acts/villain.js";
import { audit, type Fault, faults, type Report } from "../audit/auditor.js";
import { Ledger } from "../audit/ledger.js";
import { type Receiver, startReceiver } from "../audit/receiver.js";
import { Watcher } from "../audit/watcher.js";
import { type Random, seeded } from "../random.js";
import { Scene, type Stage, stockPython } from "../scene.js";
import { replay, runClient } from "./clients.js";
import { Fleet, type Settings } from "./fleet.js";

const clientCount = 12;
/** A job may wait 35 s until its worker counts as lost, and then for its turn. */
const drainMs = 90_000;
/** Three attempts, 10 s apart. */
const webhooksMs = 60_000;

/** What a campaign does, and for how long. A seed repeats the same choices, but their effects vary. */
export interface Plan extends Settings {
  readonly seed: number;
  /** How long all acts go on in a round, before a worker is frozen. */
  readonly rageMs: number;
  /** A new round starts while this time is not over; there is at least one. */
  readonly forMs: number;
  /** Called about ten times a minute. */
  readonly onProgress?: (line: string) => void;
}

/** The outcome of all rounds: their reports added up, and the villain's acts. */
export interface Outcome extends Report {
  readonly acts: Readonly<Record<ActName, number>>;
  readonly kills: number;
  readonly killsPerMinute: number;
}

/** Everything that outlives a round. */
interface Stagecraft {
  readonly fleet: Fleet;
  readonly scene: Scene;
  readonly stages: readonly Stage[];
  readonly receiver: Receiver;
  readonly random: Random;
}

/** Runs clients, workers and a villain against servers, and audits the result, round by round. */
export async function runCampaign(plan: Plan): Promise<Outcome> {
  const scene = new Scene();
  const fleet = await Fleet.open(plan);
  const random = seeded(plan.seed);
  const receiver = await startReceiver(fleet.direct, seeded(plan.seed + 1));
  const beganAt = Date.now();
  const tally = new Tally();
  try {
    const craft = { fleet, scene, receiver, random, stages: await setStages(scene, fleet) };
    for (let round = 1; round === 1 || Date.now() < beganAt + plan.forMs; round++) {
      tally.add(await runRound(craft, plan, `r${round}`, tally));
    }
    return tally.outcome();
  } finally {
    await fleet.end();
    await receiver.end();
    scene.end();
  }
}

/** Several endpoints, so that there are many workers to kill, though each endpoint alone recovers slowly. */
async function setStages(scene: Scene, { direct, posts }: Fleet): Promise<Stage[]> {
  const python = stockPython();
  const many = { workersMax: 2 + posts.length, scalerType: "REQUEST_COUNT", scalerValue: 1 };
  const stages: Stage[] = [];
  for (let n = 0; n < 6; n++) stages.push(await scene.own(direct, many));
  stages.push(await scene.own(direct, { workersMax: 1 }, 4));
  if (python !== undefined) stages.push(await scene.stock(direct, python, { workersMax: 2, idleTimeout: 30 }));
  return stages;
}

async function runRound(craft: Stagecraft, plan: Plan, name: string, tally: Tally): Promise<Report> {
  const { fleet, scene, stages, receiver, random } = craft;
  const ledger = new Ledger();
  const acts = new ActLog();
  scene.journal.forget();
  receiver.forget();
  const watcher = new Watcher(fleet, ledger, seeded(random.whole(0, 2 ** 31)));
  const villain = new Villain({ fleet, stages, random, ledger, journal: scene.journal, acts });
  const over = new AbortController();
  const watched = new AbortController();
  const clients = Array.from({ length: clientCount }, (_, n) => {
    const own = seeded(random.whole(0, 2 ** 31));
    return runClient({ fleet, stages, random: own, name: `${name}-c${n}`, ledger, receiver, signal: over.signal });
  });
  const watching = watcher.watch(watched.signal);
  const telling = tell(plan, () => tally.line(name, ledger, acts), watched.signal);
  const beganAt = Date.now();
  try {
    await villain.rage(() => Date.now() < beganAt + plan.rageMs);
    const complaint = await villain.freeze();
    if (complaint !== undefined) ledger.complaints.push(complaint);
  } finally {
    tally.rage(acts, Date.now() - beganAt);
    await villain.release();
    over.abort();
    await Promise.all(clients);
    watched.abort();
    await Promise.all([watching, telling]);
  }
  await watcher.drain(drainMs);
  await replay(fleet.direct, ledger);
  await webhooksIn(ledger, receiver);
  const { deliveries } = receiver;
  return audit({ ledger, runs: scene.runs(), acts: acts.all, deliveries, said: (worker) => fleet.said(worker) });
}

/** Waits until every final state was delivered, or until no more webhooks can come. */
async function webhooksIn(ledger: Ledger, { deliveries }: Receiver): Promise<void> {
  const due = ledger.acknowledged().flatMap(({ key, webhook, final }) => (webhook && final ? [key] : []));
  const isTold = () => {
    const keys = new Set(deliveries.map(({ key }) => key));
    return due.every((key) => keys.has(key));
  };
  await until(isTold, webhooksMs).catch(() => {}); // the audit names the missing ones
}

async function tell({ onProgress }: Plan, line: () => string, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    onProgress?.(line());
    await sleep(6_000, undefined, { signal }).catch(() => {});
  }
}

/** The sums over all rounds. */
class Tally {
  readonly #counts: Record<string, number> = {};
  readonly #acts = Object.fromEntries(actNames.map((name) => [name, 0])) as Record<ActName, number>;
  readonly #faults = Object.fromEntries(faults.map((name): [Fault, string[]] => [name, []])) as Record<Fault, string[]>;
  #rageMs = 0;

  add(report: Report): void {
    for (const [name, count] of Object.entries(report.counts)) this.#counts[name] = (this.#counts[name] ?? 0) + count;
    for (const name of faults) this.#faults[name].push(...report.faults[name]);
  }

  rage(acts: ActLog, ms: number): void {
    for (const { act } of acts.all) this.#acts[act] += 1;
    this.#rageMs += ms;
  }

  line(round: string, ledger: Ledger, acts: ActLog): string {
    const faulty = faults.reduce((sum, name) => sum + this.#faults[name].length, ledger.complaints.length);
    const kills = this.#kills + acts.all.filter(({ act }) => isKill(act)).length;
    const acknowledged = (this.#counts.acknowledged ?? 0) + ledger.acknowledged().length;
    return `${round}: ${acknowledged} acknowledged, ${ledger.unfinished().length} open, ${kills} kills, ${faulty} faults`;
  }

  outcome(): Outcome {
    const killsPerMinute = Math.round(this.#kills / (this.#rageMs / 60_000));
    return { counts: this.#counts, faults: this.#faults, acts: this.#acts, kills: this.#kills, killsPerMinute };
  }

  get #kills(): number {
    return actNames.filter(isKill).reduce((sum, name) => sum + this.#acts[name], 0);
  }
}

const isKill = (act: ActName) => / (killed|ended)$/.test(act);
