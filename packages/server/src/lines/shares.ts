import { type Clock, PlainSignal, type Signal } from "../clock.js";

/** Memory on loan to one caller. */
export interface Share {
  /** Gives back all but `bytes`; used when the size was not known beforehand. */
  keep(bytes: number): void;
  /** Gives back the rest; further calls do nothing. */
  release(): void;
}

export interface SharesParts {
  readonly clock: Clock;
  /** The most that is lent in all. */
  readonly bytesMax: number;
  /** The most that is lent to one owner, so that others always find room. */
  readonly ownerBytesMax: number;
  /** How long a request waits for room, unless it says otherwise. */
  readonly waitMs: number;
}

interface Asking {
  readonly bytes: number;
  readonly grant: (share: Share | undefined) => void;
}

/**
 * A budget of memory for everything large that leaves the service. When it is used up, requests wait in one line per
 * owner, and the owners take turns. A request larger than the whole budget is granted once nothing else is lent.
 */
export class Shares {
  readonly #parts: SharesParts;
  readonly #held = new Map<number, number>(); // by owner
  readonly #lines = new Map<number, Asking[]>(); // by owner, in the order of their turns
  #heldBytes = 0;

  constructor(parts: SharesParts) {
    this.#parts = parts;
  }

  get heldBytes(): number {
    return this.#heldBytes;
  }

  /** Whether a request waits for room: readers that make no progress should then give theirs back. */
  get isWanted(): boolean {
    return this.#lines.size > 0;
  }

  /** A share of `bytes`; undefined if no room became free in time or the caller has gone. */
  async ask(ownerNo: number, bytes: number, gone: Signal, waitMs = this.#parts.waitMs): Promise<Share | undefined> {
    if (gone.aborted) return undefined;
    let leave = () => {};
    let isWaiting = true;
    const asked = new Promise<Share | undefined>((resolve) => {
      const grant = (share: Share | undefined) => {
        isWaiting = false;
        resolve(share);
      };
      const asking: Asking = { bytes, grant };
      const line = this.#lines.get(ownerNo) ?? [];
      line.push(asking);
      this.#lines.set(ownerNo, line);
      leave = () => {
        this.#drop(ownerNo, asking);
        grant(undefined);
      };
    });
    this.#grant();
    if (!isWaiting) return asked;
    const over = new PlainSignal();
    gone.addEventListener("abort", leave);
    void this.#parts.clock.sleep(waitMs, over).then(leave);
    const share = await asked;
    gone.removeEventListener("abort", leave);
    over.abort();
    return share;
  }

  /**
   * Serves the lines in turn. A request that lacks only common room holds up the owners behind it: otherwise it would
   * starve.
   */
  #grant(): void {
    for (let hasGranted = true; hasGranted; ) {
      hasGranted = false;
      for (const [ownerNo, line] of [...this.#lines]) {
        const asking = line[0] as Asking;
        if (!this.#fitsOwner(ownerNo, asking.bytes)) continue;
        if (this.#heldBytes > 0 && this.#heldBytes + asking.bytes > this.#parts.bytesMax) return;
        this.#drop(ownerNo, asking);
        // this owner's next turn comes last
        if (line.length > 0) {
          this.#lines.delete(ownerNo);
          this.#lines.set(ownerNo, line);
        }
        asking.grant(this.#lend(ownerNo, asking.bytes));
        hasGranted = true;
      }
    }
  }

  #fitsOwner(ownerNo: number, bytes: number): boolean {
    const held = this.#held.get(ownerNo) ?? 0;
    return held === 0 || held + bytes <= this.#parts.ownerBytesMax;
  }

  #drop(ownerNo: number, asking: Asking): void {
    const line = this.#lines.get(ownerNo);
    const at = line?.indexOf(asking) ?? -1;
    if (!line || at < 0) return;
    line.splice(at, 1);
    if (line.length === 0) this.#lines.delete(ownerNo);
    // the first in its line may have held up others
    if (at === 0 && this.#lines.size > 0) queueMicrotask(() => this.#grant());
  }

  #lend(ownerNo: number, bytes: number): Share {
    let left = 0;
    const change = (to: number) => {
      const held = (this.#held.get(ownerNo) ?? 0) + to - left;
      this.#heldBytes += to - left;
      left = to;
      if (held > 0) this.#held.set(ownerNo, held);
      else this.#held.delete(ownerNo);
    };
    const shrink = (to: number) => {
      if (to >= left) return;
      change(to);
      this.#grant();
    };
    change(bytes);
    return { keep: shrink, release: () => shrink(0) };
  }
}
