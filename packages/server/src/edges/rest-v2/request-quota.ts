import type { FastifyInstance } from "fastify";
import { Refusal } from "../../errors.js";
import { limits } from "../../limits/index.js";
import type { Needs } from "../../operations/needs.js";

const windowMs = 60_000;

/** Counts each user's requests to this server in whole minutes. */
export class RequestQuota {
  readonly most: number;
  /** Requests of the present minute, by user. */
  readonly #counts = new Map<number, number>();
  #minute = 0;

  constructor(most: number = limits.restV2PerMinuteMax) {
    this.most = most;
  }

  /** Counts a request. `remaining`: how many more the user may make in this minute; -1: this one was too many. */
  count(ownerNo: number, now: number): { readonly remaining: number; readonly resetSeconds: number } {
    const minute = Math.floor(now / windowMs);
    if (minute !== this.#minute) this.#counts.clear();
    this.#minute = minute;
    const counted = Math.min((this.#counts.get(ownerNo) ?? 0) + 1, this.most + 1);
    this.#counts.set(ownerNo, counted);
    return { remaining: this.most - counted, resetSeconds: Math.ceil(((minute + 1) * windowMs - now) / 1_000) };
  }

  get policy(): string {
    return `"minute";q=${this.most};w=60`;
  }
}

/** Limits the requests of known callers, and tells them in RateLimit headers how many are left (decisions: REST v2). */
export function limitRequests(app: FastifyInstance, quota: RequestQuota, { clock }: Needs<"clock">): void {
  app.addHook("onRequest", async ({ caller }, reply) => {
    const { remaining, resetSeconds } = quota.count(caller.ownerNo, clock.now());
    reply.header("ratelimit", `"minute";r=${Math.max(0, remaining)};t=${resetSeconds}`);
    reply.header("ratelimit-policy", quota.policy);
    if (remaining >= 0) return;
    const sentence = `Your user has made the ${quota.most} requests of this minute; go on in ${resetSeconds} s.`;
    throw new Refusal("RATE_LIMITED", sentence, { retryAfterSeconds: resetSeconds });
  });
}
