import { limits } from "../../limits/index.js";
import { WebhookBytes } from "../../lines/webhook-bytes.js";
import { WebhookCalls } from "../../lines/webhook-calls.js";
import type { Attempt, Delivery } from "../../store/index.js";

/** An attempt that was made, and what it means for its delivery. */
export interface Made {
  readonly delivery: Delivery;
  readonly attempt: Attempt;
  readonly outcome: { readonly state: Delivery["state"]; readonly nextAt?: number };
}

/**
 * Which deliveries are under way, and which attempts are not recorded yet. It outlives the loop: a server that loses
 * both its lease and the database, and gets them back, must not repeat a post.
 */
export class WebhookMemory {
  readonly #inFlight = new Set<number>();
  /** Deliveries that ended while a page was being read: the page may still show their earlier state. */
  readonly #endedMeanwhile = new Set<number>();
  readonly #unrecorded = new Map<number, Made>();
  readonly #pauses = new Map<number, { readonly untilAt: number; readonly ms: number }>();
  readonly #unrecordedMax: number;
  readonly calls: WebhookCalls;
  readonly bodies: WebhookBytes;

  constructor({
    unrecordedMax = limits.webhookUnrecordedMax,
    calls = new WebhookCalls(),
    bodies = new WebhookBytes(),
  }: { unrecordedMax?: number; calls?: WebhookCalls; bodies?: WebhookBytes } = {}) {
    this.#unrecordedMax = unrecordedMax;
    this.calls = calls;
    this.bodies = bodies;
  }

  /** Whether there is work left even if nothing is due. */
  get isBusy(): boolean {
    return this.#inFlight.size + this.#unrecorded.size > 0;
  }

  /** Reading a page begins. */
  beginPage(): void {
    this.#endedMeanwhile.clear();
  }

  /** Whether a delivery may be attempted. */
  mayBegin(no: number, now: number): boolean {
    if (this.#endedMeanwhile.has(no) || this.#unrecorded.has(no)) return false;
    return this.#unrecorded.size < this.#unrecordedMax && this.#isAtRest(no, now);
  }

  begin(no: number): void {
    this.#inFlight.add(no);
  }

  end(no: number): void {
    this.#inFlight.delete(no);
    this.#endedMeanwhile.add(no);
  }

  /** Remembers an attempt until it is recorded. */
  note(made: Made): void {
    this.#unrecorded.set(made.delivery.no, made);
    this.#pauses.delete(made.delivery.no);
  }

  recorded(no: number): void {
    this.#unrecorded.delete(no);
    this.#pauses.delete(no);
  }

  /** Attempts whose recording is due to be retried. */
  unrecorded(now: number): Made[] {
    return [...this.#unrecorded.values()].filter(({ delivery }) => this.#isAtRest(delivery.no, now));
  }

  /** Pauses a delivery because the database failed, each time for twice as long. True for the first pause. */
  pause(no: number, now: number): boolean {
    const before = this.#pauses.get(no);
    const ms = before ? Math.min(before.ms * 2, limits.webhookPauseMsMax) : limits.webhookPauseMsMin;
    this.#pauses.delete(no);
    this.#pauses.set(no, { untilAt: now + ms, ms });
    if (this.#pauses.size > limits.webhookPausesMax) this.#pauses.delete(this.#pauses.keys().next().value as number);
    return before === undefined;
  }

  /** Neither under way nor paused. */
  #isAtRest(no: number, now: number): boolean {
    return !this.#inFlight.has(no) && now >= (this.#pauses.get(no)?.untilAt ?? 0);
  }
}
