import { setTimeout as sleep } from "node:timers/promises";
import type { Fleet } from "../campaign/fleet.js";
import type { Random } from "../random.js";
import type { Target } from "../scene.js";
import type { Ledger, Submission } from "./ledger.js";

const pollsAtOnce = 40;
const rechecksAtOnce = 5;
const pauseMs = 200;
/** No job of a campaign runs this long, whatever the wall clock shows meanwhile. */
const durationMsMax = 10 * 60_000;

interface State {
  readonly status: string;
  readonly retries: number;
  readonly delayTime: number;
  readonly executionTime: number;
  readonly workerId: string;
  readonly output?: unknown;
  readonly error?: string;
}

/** The conditions that a status body must meet, by state. */
const shapes: Readonly<Record<string, (state: State) => boolean>> = {
  IN_QUEUE: ({ output, error }) => output === undefined && error === undefined,
  IN_PROGRESS: ({ workerId, error }) => workerId !== "" && error === undefined,
  COMPLETED: ({ workerId, error }) => workerId !== "" && error === undefined,
  FAILED: ({ workerId, error }) => workerId !== "" && typeof error === "string",
  CANCELLED: () => true,
  TIMED_OUT: ({ workerId }) => workerId !== "",
};
const finals = ["COMPLETED", "FAILED", "CANCELLED", "TIMED_OUT"];

/** Reads the states of acknowledged jobs: each change must be a valid transition, and a final state must stay. */
export class Watcher {
  readonly #fleet: Fleet;
  readonly #ledger: Ledger;
  readonly #random: Random;

  constructor(fleet: Fleet, ledger: Ledger, random: Random) {
    this.#fleet = fleet;
    this.#ledger = ledger;
    this.#random = random;
  }

  /** Reads states again and again, also of jobs that have ended: their final body must not change. */
  async watch(signal: AbortSignal): Promise<void> {
    // Each job at most once: the order of two concurrent reads is unknown.
    const some = (jobs: readonly Submission[], count: number) =>
      jobs.length > count ? [...new Set(Array.from({ length: count }, () => this.#random.pick(jobs)))] : jobs;
    while (!signal.aborted) {
      const ended = this.#ledger.submissions.filter((each) => each.final);
      await this.#lookAt([...some(this.#ledger.unfinished(), pollsAtOnce), ...some(ended, rechecksAtOnce)]);
      await sleep(pauseMs);
    }
  }

  /** Waits until every acknowledged job has ended, then reads all of them once more. */
  async drain(withinMs: number): Promise<void> {
    const deadline = Date.now() + withinMs;
    while (this.#ledger.unfinished().length > 0 && Date.now() < deadline) {
      await this.#lookAt(this.#ledger.unfinished().slice(0, pollsAtOnce));
      await sleep(100);
    }
    const all = this.#ledger.acknowledged();
    for (let at = 0; at < all.length; at += pollsAtOnce) await this.#lookAt(all.slice(at, at + pollsAtOnce));
  }

  async #lookAt(submissions: readonly Submission[]): Promise<void> {
    await Promise.all(submissions.map((each) => this.#look(each)));
  }

  async #look(submission: Submission): Promise<void> {
    const { stage, id, key } = submission;
    const reply = await status(this.#fleet.front(this.#random), `/v2/${stage.endpoint}/status/${id}`);
    if (reply === undefined || reply.status === 503) return;
    if (reply.status === 200) this.#heard(submission, reply.text);
    else this.#ledger.complaints.push(`${key} (${id}) was answered ${reply.status} ${reply.text}`);
  }

  #heard(submission: Submission, text: string): void {
    const { complaints } = this.#ledger;
    const { key, final, seen } = submission;
    if (final !== undefined) {
      if (final.text !== text) complaints.push(`${key} ended as ${final.text}, then was ${text}`);
      return;
    }
    const state: State = JSON.parse(text);
    if (!shapes[state.status]?.(state) || !isTimely(state))
      complaints.push(`${key} is in an impossible state: ${text}`);
    if (state.retries < (seen?.retries ?? 0)) complaints.push(`${key} has fewer retries than before: ${text}`);
    this.#noteChange(seen?.status ?? "(submitted)", state.status);
    submission.seen = { status: state.status, retries: state.retries };
    if (finals.includes(state.status)) this.#ledger.end(submission, text);
  }

  #noteChange(from: string, to: string): void {
    if (from === to) return;
    const change = `${from} -> ${to}`;
    this.#ledger.changes.set(change, (this.#ledger.changes.get(change) ?? 0) + 1);
  }
}

const isTimely = ({ delayTime, executionTime }: State) =>
  [delayTime, executionTime].every((ms) => Number.isInteger(ms) && ms >= 0 && ms < durationMsMax);

async function status({ url, key }: Target, path: string) {
  try {
    const headers = { authorization: `Bearer ${key}` };
    const reply = await fetch(url + path, { headers, signal: AbortSignal.timeout(5_000) });
    return { status: reply.status, text: await reply.text() };
  } catch {
    return undefined; // the server is away at the moment
  }
}
