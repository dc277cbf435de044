import { setTimeout as sleep } from "node:timers/promises";
import type { Body } from "../e2e/wire.js";
import type { Member } from "./cluster.js";

/** One submission: its key, and every id that an answer contained. */
export interface Submission {
  readonly key: string;
  readonly ids: Set<string>;
}

/** Clients that use two servers in turn, retry after a 503, and record every unexpected answer. */
export class Load {
  readonly submissions: Submission[] = [];
  readonly complaints: string[] = [];
  readonly #servers: readonly Member[];
  readonly #endpoint: string;
  readonly #running: Promise<void>[] = [];
  #over = false;
  #turn = 0;
  refusals = 0;

  constructor(servers: readonly Member[], endpoint: string) {
    this.#servers = servers;
    this.#endpoint = endpoint;
  }

  /** Starts this many submitting clients, one reader, and one manager. */
  start(clients: number): void {
    for (let n = 0; n < clients; n++) this.#running.push(this.#submitAll(`client-${n}`));
    this.#running.push(this.#askAll("GET", (server) => `${server}/v2/${this.#endpoint}/health`));
    this.#running.push(this.#askAll("PATCH", (server) => `${server}/v1/endpoints/${this.#endpoint}`));
  }

  /** Begins nothing more; resolves when every call has its answer. */
  async stop(): Promise<void> {
    this.#over = true;
    await Promise.all(this.#running);
  }

  acknowledged(): Submission[] {
    return this.submissions.filter(({ ids }) => ids.size > 0);
  }

  async #submitAll(name: string): Promise<void> {
    for (let n = 0; !this.#over; n++) {
      const submission: Submission = { key: `${name}-${n}`, ids: new Set() };
      this.submissions.push(submission);
      const body = JSON.stringify({ input: { key: submission.key, ms: n % 10 === 0 ? 1_000 : 20, fate: "return" } });
      // Every key gets an answer in the end; some are sent once more than needed, to the other server.
      for (let again = n % 5 === 0 ? 1 : 0; again >= 0; ) {
        const reply = await this.#call("POST", (server) => `${server}/v2/${this.#endpoint}/run`, body, {
          "idempotency-key": submission.key,
        });
        if (reply === undefined) continue;
        submission.ids.add(reply.id);
        again--;
      }
      await sleep(30);
    }
  }

  async #askAll(method: string, url: (server: string) => string): Promise<void> {
    for (let n = 0; !this.#over; n++) {
      await this.#call(method, url, method === "PATCH" ? JSON.stringify({ idleTimeout: 10 + (n % 5) }) : undefined);
      await sleep(100);
    }
  }

  /** The body of a 200; undefined if the call must be retried. */
  async #call(
    method: string,
    url: (server: string) => string,
    body?: string,
    headers: Record<string, string> = {},
  ): Promise<Body | undefined> {
    const server = this.#servers[this.#turn++ % this.#servers.length] as Member;
    const address = url(server.url);
    try {
      const reply = await fetch(address, {
        method,
        headers: { authorization: `Bearer ${server.key}`, ...headers },
        ...(body === undefined ? {} : { body }),
        signal: AbortSignal.timeout(40_000),
      });
      const text = await reply.text();
      if (reply.status === 200) return JSON.parse(text);
      const isRefusal = reply.status === 503 && Number(reply.headers.get("retry-after")) > 0;
      if (isRefusal) this.refusals++;
      else this.complaints.push(`${method} ${address}: ${reply.status} ${text}`);
    } catch (error) {
      this.complaints.push(`${method} ${address}: ${error}`);
    }
    await sleep(200);
    return undefined;
  }
}
