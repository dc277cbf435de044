import { setTimeout as sleep } from "node:timers/promises";
import type { Ledger, Submission } from "./clients.js";
import type { Random } from "./random.js";
import type { Target } from "./scene.js";

const finals = new Set(["COMPLETED", "FAILED", "CANCELLED", "TIMED_OUT"]);
const pollsAtOnce = 20;
const rechecksAtOnce = 5;
const pauseMs = 250;

/** Asks for the state of what was acknowledged, and remembers each first final answer. */
export class Watcher {
  readonly #server: Target;
  readonly #ledger: Ledger;

  constructor(server: Target, ledger: Ledger) {
    this.#server = server;
    this.#ledger = ledger;
  }

  /** Looks again and again, at jobs that ended too: their last word must stay what it is. */
  async watch(random: Random, signal: AbortSignal): Promise<void> {
    const some = (jobs: readonly Submission[], count: number) =>
      jobs.length > count ? Array.from({ length: count }, () => random.pick(jobs)) : jobs;
    while (!signal.aborted) {
      const ended = this.#ledger.submissions.filter((each) => each.final);
      await this.#lookAt([...some(this.#ledger.unfinished(), pollsAtOnce), ...some(ended, rechecksAtOnce)]);
      await sleep(pauseMs);
    }
  }

  /** Waits until everything acknowledged has ended, then asks for all of it once more. */
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
    const { stage, id, key, final } = submission;
    const reply = await this.#status(`/v2/${stage.endpoint}/status/${id}`);
    if (reply === undefined || reply.status === 503) return;
    const { complaints } = this.#ledger;
    if (reply.status !== 200) complaints.push(`${key} (${id}) was answered ${reply.status} ${reply.text}`);
    else if (final && final.text !== reply.text)
      complaints.push(`${key} ended as ${final.text}, then was ${reply.text}`);
    else if (finals.has(JSON.parse(reply.text).status)) submission.final ??= { text: reply.text, seenAt: Date.now() };
  }

  async #status(path: string) {
    try {
      const headers = { authorization: `Bearer ${this.#server.key}` };
      const reply = await fetch(this.#server.url + path, { headers, signal: AbortSignal.timeout(5_000) });
      return { status: reply.status, text: await reply.text() };
    } catch {
      return undefined; // the server is away just now
    }
  }
}
