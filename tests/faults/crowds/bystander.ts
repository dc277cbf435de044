import { fork } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "vitest";
import type { TestServer } from "../../harness.js";
import type { TurnTimes } from "../machine/turn-times.js";

/** How long a bystander's requests took, in milliseconds. */
export interface Times {
  readonly count: number;
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
  /** The same of a bare server beside it: the machine's share of the delay. */
  readonly bareP99: number;
  /**
   * How many times longer than its own work a computing thread beside it took, at least 1: also the machine's share.
   */
  readonly stretch: number;
  readonly failures: readonly string[];
  /** The longest turn of the server's event loop meanwhile, in milliseconds of processor time; 0 if not watched. */
  readonly turnMs: number;
}

/** A well-behaved client beside the hostile ones. */
export interface Bystander {
  /** Measures its requests while `act` runs. */
  during(act: () => Promise<unknown>): Promise<Times>;
  /** Expects every job that it submitted since the last call (with "ever": every job at all) to be there still. */
  expectNothingLost(ever?: "ever"): Promise<void>;
  end(): void;
}

const usualMs = 1_000;

/** Starts a client that submits and reads jobs of an endpoint without workers. */
export async function startBystander(server: TestServer, endpoint: string, turns?: TurnTimes): Promise<Bystander> {
  const about = JSON.stringify({ url: server.url, key: server.key, endpoint });
  const child = fork(join(import.meta.dirname, "bystander.mjs"), [about], { execArgv: [] });
  const ended = new Promise<never>((_, reject) => {
    child.once("exit", () => reject(new Error("the bystander has ended")));
  });
  ended.catch(() => {});
  // biome-ignore lint/suspicious/noExplicitAny: each command has its own answer
  const ask = (word: string): Promise<any> => {
    const answered = new Promise((resolve) => {
      const hear = (message: { word: string; answer: unknown }) => {
        if (message.word !== word) return;
        child.off("message", hear);
        resolve(message.answer);
      };
      child.on("message", hear);
    });
    child.send(word);
    return Promise.race([answered, ended]);
  };
  await sleep(1_000); // a server that has just started is slower than usual
  return {
    async during(act) {
      await ask("begin");
      const beganAt = Date.now();
      await act();
      return { ...(await ask("end")), turnMs: (await turns?.longestSince(beganAt)) ?? 0 };
    },
    expectNothingLost: async (ever) => expect(await ask(ever ? "lostEver" : "lost")).toEqual([]),
    end: () => child.disconnect(),
  };
}

const ms = (time: number) => `${time.toFixed(1)} ms`;
const worded = ({ p50, p99, max, count, bareP99, stretch, turnMs }: Times) =>
  `p50 ${ms(p50)}, p99 ${ms(p99)}, longest ${ms(max)} of ${count} requests ` +
  `(a bare server's p99: ${ms(bareP99)}, a thread's computing stretched ${stretch.toFixed(1)} times; ` +
  `the server's longest turn: ${ms(turnMs)} of processor time)`;

/** One turn of the event loop may not compute longer: that delays every request that comes meanwhile. */
const turnMostMs = 100;

/** A stall of the server shows in every round; a stall of the machine does not. */
const rounds = 6;

/**
 * Expects healthy requests to be answered as usual while `attack` goes on: p99 under 50 ms (`usualMostMs`) on a machine
 * with a free core for each thread. The bound is scaled by how much longer a computing thread took, just before or
 * meanwhile: the attackers need cores, too. Twice the usual p99, or twice a bare server's p99 during the attack, also
 * passes. The best round counts, against the machine's largest delay in any round. An attack of a single moment is
 * judged by its longest request instead (`judged`).
 * Whatever the machine does, in one of these rounds no turn of the server's event loop may compute for 100 ms.
 */
export async function expectUndisturbed(
  bystander: Bystander,
  name: string,
  attack: () => Promise<unknown>,
  usualMostMs = 50,
  judged: "p99" | "max" = "p99",
) {
  const seen: string[] = [];
  let best = Number.POSITIVE_INFINITY;
  let bestTurn = Number.POSITIVE_INFINITY;
  let most = usualMostMs;
  for (let round = 0; round < rounds && (best >= most || bestTurn >= turnMostMs); round++) {
    const usual = await bystander.during(() => sleep(usualMs));
    const times = await bystander.during(attack);
    seen.push(`${name}: ${worded(times)}\n  its usual: ${worded(usual)}`);
    console.log(seen.at(-1));
    expect([...usual.failures, ...times.failures]).toEqual([]);
    best = Math.min(best, times[judged]);
    bestTurn = Math.min(bestTurn, times.turnMs);
    most = Math.max(most, 2 * usual.p99, 2 * times.bareP99, usualMostMs * usual.stretch, usualMostMs * times.stretch);
  }
  expect(best, seen.join("\n")).toBeLessThan(most);
  expect(bestTurn, seen.join("\n")).toBeLessThan(turnMostMs);
}

/** The memory a process holds now, in MiB. */
export function memoryMib(pid: number): number {
  const [, kib] = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
  return Number(kib) / 1_024;
}
