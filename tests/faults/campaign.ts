import type { TestServer } from "../harness.js";
import { audit, type Report } from "./auditor.js";
import { Ledger, replay, runClient } from "./clients.js";
import { seeded } from "./random.js";
import { Scene, stockPython } from "./scene.js";
import { Villain } from "./villain.js";
import { Watcher } from "./watcher.js";

const clientCount = 12;
/** A job may wait for a worker that is missed after 35 s, and then for its turn. */
const drainMs = 90_000;

/** What is to happen, and for how long. A seed makes the same choices again; what comes of them varies. */
export interface Plan {
  readonly seed: number;
  readonly rageMs: number;
  /** How often all of it is done. */
  readonly rounds: number;
}

/** What happened: the report, and what the villain did. */
export interface Outcome extends Report {
  readonly kills: { readonly server: number; readonly worker: number };
  readonly stops: number;
  readonly frozen: number;
  readonly lies: number;
}

/** Lets clients, workers and a villain loose on a server, and audits what became of it. */
export async function runCampaign(server: TestServer, plan: Plan): Promise<Outcome> {
  const scene = new Scene();
  const ledger = new Ledger();
  const watcher = new Watcher(server, ledger);
  const python = stockPython();
  const stages = [
    await scene.own(server, { workersMax: 3, scalerType: "REQUEST_COUNT", scalerValue: 1 }),
    await scene.own(server, { workersMax: 1 }, 4),
    ...(python === undefined ? [] : [await scene.stock(server, python, { workersMax: 2, idleTimeout: 30 })]),
  ];
  const villain = new Villain({ server, stages, random: seeded(plan.seed), ledger, runs: () => scene.runs() });
  const over = new AbortController();
  const watched = new AbortController();
  const client = (n: number) =>
    runClient({ server, stages, random: seeded(plan.seed + n), name: `c${n}`, ledger, signal: over.signal });
  const clients = Promise.all(Array.from({ length: clientCount }, (_, n) => client(n + 1)));
  const watching = watcher.watch(seeded(plan.seed - 1), watched.signal);
  try {
    for (let round = 0; round < plan.rounds; round++) {
      const endAt = Date.now() + plan.rageMs;
      await villain.rage(() => Date.now() < endAt);
      const complaint = await villain.freeze();
      if (complaint !== undefined) ledger.complaints.push(complaint);
    }
  } finally {
    await villain.release();
    over.abort();
    await clients;
    watched.abort();
    await watching;
  }
  await watcher.drain(drainMs);
  await replay(server, ledger);
  const report = audit({ ledger, runs: scene.runs(), acts: villain.acts });
  scene.end();
  return {
    ...report,
    kills: { server: villain.count("server killed"), worker: villain.count("worker killed") },
    stops: villain.count("worker stopped"),
    frozen: villain.count("worker frozen"),
    lies: villain.count("lie told"),
  };
}

/** The outcome in lines for a person. */
export function tell(outcome: Outcome, seed: number): string {
  const lists = ["lost", "doubleHeld", "needless", "wrong"] as const;
  const { kills } = outcome;
  return [
    `seed ${seed}`,
    `${outcome.acknowledged} acknowledged: ${outcome.completed} completed, ${outcome.failed} failed`,
    `${kills.server} server kills, ${kills.worker} worker kills, ${outcome.stops} stops, ${outcome.frozen} frozen, ` +
      `${outcome.lies} lies; ${outcome.runsAgain} runs were repeated`,
    `${outcome.lost.length} lost, ${outcome.doubleHeld.length} double-held, ${outcome.needless.length} run again ` +
      `for no reason, ${outcome.wrong.length} wrong`,
    ...lists.flatMap((name) => outcome[name].slice(0, 20).map((sentence) => `  ${name}: ${sentence}`)),
  ].join("\n");
}
