import { limits } from "../../limits/index.js";
import { WebhookBytes } from "../../lines/webhook-bytes.js";
import { WebhookPlaces } from "../../lines/webhook-places.js";
import type { Attempt, Delivery } from "../../store/index.js";

/** An attempt that was made, and what becomes of its delivery. */
export interface Made {
  readonly delivery: Delivery;
  readonly attempt: Attempt;
  readonly outcome: { readonly state: Delivery["state"]; readonly nextAt?: number };
}

/**
 * Which deliveries are under way, and what was attempted and is not recorded yet. It outlives the loop: a server that loses its
 * lease together with the database, and gets both back, must not post again what it has posted.
 */
export class WebhookMemory {
  readonly #inFlight = new Set<number>();
  /** Those that ended while a page was being read: the page may show them as they were before. */
  readonly #endedMeanwhile = new Set<number>();
  readonly #unrecorded = new Map<number, Made>();
  readonly #pauses = new Map<number, { readonly untilAt: number; readonly ms: number }>();
  readonly #unrecordedMax: number;
  readonly places: WebhookPlaces;
  readonly bodies: WebhookBytes;

  constructor({
    unrecordedMax = limits.webhookUnrecordedMax,
    places = new WebhookPlaces(),
    bodies = new WebhookBytes(),
  }: { unrecordedMax?: number; places?: WebhookPlaces; bodies?: WebhookBytes } = {}) {
    this.#unrecordedMax = unrecordedMax;
    this.places = places;
    this.bodies = bodies;
  }

  /** Whether there is something to look after, though nothing may be due. */
  get isBusy(): boolean {
    return this.#inFlight.size + this.#unrecorded.size > 0;
  }

  /** A page is read from now on. */
  beginPage(): void {
    this.#endedMeanwhile.clear();
  }

  /** Whether an attempt may be made. */
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

  /** An attempt was made; it is remembered until it is recorded. */
  note(made: Made): void {
    this.#unrecorded.set(made.delivery.no, made);
    this.#pauses.delete(made.delivery.no);
  }

  recorded(no: number): void {
    this.#unrecorded.delete(no);
    this.#pauses.delete(no);
  }

  /** Attempts whose record is to be written again now. */
  unrecorded(now: number): Made[] {
    return [...this.#unrecorded.values()].filter(({ delivery }) => this.#isAtRest(delivery.no, now));
  }

  /** The database failed at a delivery: it rests, each time twice as long. True for the first time. */
  pause(no: number, now: number): boolean {
    const before = this.#pauses.get(no);
    const ms = before ? Math.min(before.ms * 2, limits.webhookPauseMsMax) : limits.webhookPauseMsMin;
    this.#pauses.delete(no);
    this.#pauses.set(no, { untilAt: now + ms, ms });
    if (this.#pauses.size > limits.webhookPausesMax) this.#pauses.delete(this.#pauses.keys().next().value as number);
    return before === undefined;
  }

  /** Neither under way nor in a pause. */
  #isAtRest(no: number, now: number): boolean {
    return !this.#inFlight.has(no) && now >= (this.#pauses.get(no)?.untilAt ?? 0);
  }
}
