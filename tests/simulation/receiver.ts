import type { Sender, SendOutcome } from "../../packages/server/src/sender.js";
import type { Random } from "../faults/random.js";
import type { Timeline } from "./clock.js";

/** The behaviours of a receiver of webhooks, by the path of its address. */
export const receivers = ["fine", "failing", "flaky", "hanging"] as const;

interface Post {
  readonly jobId: string;
  readonly at: number;
  readonly status: number | undefined;
}

/** The receivers of webhooks. Records every call, and checks the sender's promises. */
export class Receiver implements Sender {
  readonly #timeline: Timeline;
  readonly #random: Random;
  readonly #deaths: () => number;
  readonly #broken: (rule: string, sentence: string) => void;
  readonly #note: (line: string) => void;
  readonly #posts = new Map<string, Post[]>();
  readonly #deathsAt = new Map<string, number>();

  constructor(
    timeline: Timeline,
    random: Random,
    parts: {
      deaths: () => number;
      broken: (rule: string, sentence: string) => void;
      note: (line: string) => void;
    },
  ) {
    this.#timeline = timeline;
    this.#random = random;
    this.#deaths = parts.deaths;
    this.#broken = parts.broken;
    this.#note = parts.note;
  }

  async post(
    url: string,
    pieces: readonly Uint8Array[],
    headers: Record<string, string>,
    signal: AbortSignal,
  ): Promise<SendOutcome> {
    const { id, status: jobStatus } = JSON.parse(Buffer.concat(pieces).toString());
    const name = headers["webhook-id"] ?? "";
    const { status, ms } = this.#answer(new URL(url).pathname.slice(1));
    this.#judge(name, { jobId: id, at: this.#timeline.now(), status }, jobStatus);
    await this.#timeline.sleep(ms, signal);
    return { status, error: status === undefined ? "no answer" : undefined };
  }

  async close(): Promise<void> {}

  #answer(kind: string): { status: number | undefined; ms: number } {
    if (kind === "hanging") return { status: undefined, ms: 10_000 };
    const isFine = kind === "fine" || (kind === "flaky" && this.#random.chance(0.5));
    return { status: isFine ? 200 : 500, ms: this.#random.pick([0, 3, 800]) };
  }

  /** An attempt is repeated if its server died before it was recorded. */
  #judge(name: string, post: Post, jobStatus: string): void {
    const posts = this.#posts.get(name) ?? [];
    this.#note(`webhook ${this.#ordinal(name)} of ${post.jobId}, attempt ${posts.length + 1}: ${post.status}`);
    const mayRepeat = this.#deaths() - (this.#deathsAt.get(name) ?? this.#deaths());
    const last = posts.at(-1);
    if (posts.length >= 3 + mayRepeat)
      this.#broken("webhooks", `${post.jobId}: attempt ${posts.length + 1} of ${name}`);
    if (last && last.jobId !== post.jobId) this.#broken("webhooks", `${name} is of ${last.jobId} and ${post.jobId}`);
    if (last && mayRepeat === 0 && last.status === 200) this.#broken("webhooks", `${name} came again after a 200`);
    if (last && mayRepeat === 0 && post.at - last.at < 10_000) this.#broken("webhooks", `${name} came again too soon`);
    if (!["COMPLETED", "FAILED", "CANCELLED", "TIMED_OUT"].includes(jobStatus))
      this.#broken("webhooks", `${post.jobId} was reported as ${jobStatus}`);
    if (!last) this.#deathsAt.set(name, this.#deaths());
    this.#posts.set(name, [...posts, post]);
  }

  /** Delivery ids are random, so a trace numbers them instead. */
  #ordinal(name: string): number {
    const at = [...this.#posts.keys()].indexOf(name);
    return at < 0 ? this.#posts.size : at;
  }
}
