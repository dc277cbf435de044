import type { Connection } from "../connection.js";
import { limits } from "../limits.js";
import { type Settings, withParameters } from "../settings.js";
import { version } from "../version.js";

/** Where and how often to ping: plain data, so that it can be passed to a thread. */
export type PingTarget = Pick<Settings, "pingUrl" | "doneBatchUrl" | "pingIntervalMs">;

interface Parts {
  readonly target: PingTarget;
  readonly connection: Connection;
  /** Called once the server has refused too many calls in a row for it to be a mistake. */
  onRefused(): void;
}

/** Makes the calls that show the server that this worker is alive. */
export class Pinger {
  readonly #target: PingTarget;
  readonly #connection: Connection;
  readonly #onRefused: () => void;
  #refused = 0;

  constructor({ target, connection, onRefused }: Parts) {
    this.#target = target;
    this.#connection = connection;
    this.#onRefused = onRefused;
  }

  /**
   * Reports the jobs that the worker holds. The list must be complete: a job that two pings leave out counts as lost.
   */
  async ping(ids: readonly string[]): Promise<void> {
    const url = withParameters(this.#target.pingUrl ?? "", {
      ...(ids.length > 0 && { job_id: ids.join(",") }),
      runpod_version: `millrace-${version}`,
    });
    await this.#call("GET", url);
  }

  /** A sign of life that says nothing about jobs: an empty list of results. */
  async showLife(): Promise<void> {
    if (this.#target.doneBatchUrl) await this.#call("POST", this.#target.doneBatchUrl, "[]");
  }

  async #call(method: "GET" | "POST", url: string, body?: string): Promise<void> {
    const silenceMaxMs = this.#target.pingIntervalMs * 2;
    const reply = await this.#connection.call(method, url, { silenceMaxMs, ...(body !== undefined && { body }) });
    this.#refused = reply.status === 401 ? this.#refused + 1 : 0;
    if (this.#refused === limits.refusedPingsMax) this.#onRefused();
  }
}
