/** The end of a log that is kept already. */
export interface KeptEnd {
  /** The time with which its last line is kept: the cluster's own for it, or a later one if a clock was set back. */
  readonly lastUs: number;
  /** The last line that surely has the cluster's own time, and how many lines follow it. */
  readonly sure?: { readonly us: number; readonly after: number } | undefined;
}

/**
 * How far a log has been read. It is read on from a whole second, so lines come again. Lines may have the same time, as
 * all do that a runtime has read at once, and a time before that of the line above: those of the other pipe, or after a
 * clock was set back. So lines are counted from the one with the latest time on.
 */
export class LogPosition {
  readonly #kept: KeptEnd | undefined;
  /** The latest time of a line; later times are greater texts. */
  #latest = "";
  /** How many lines have been read from that line on, and the earliest of their times. */
  #count = 0;
  #earliest = "";
  /** Of the lines that are counted, how many have not come again in this reading; undefined before the first of them. */
  #toCome: number | undefined;
  /** The time, in microseconds, of a line that is kept, and that has not come yet. */
  #sought: string | undefined;
  /** How many lines that follow it are kept, too, and have not come yet. */
  #kepts = 0;

  /**
   * With `backUs`, the line that is kept with the cluster's own time is sought from that long before it on: what follows
   * it may have been written by a clock that was set back.
   */
  constructor(kept?: KeptEnd, backUs = 0) {
    this.#kept = kept;
    this.#afterLast();
    if (!kept?.sure || backUs === 0) return;
    const { us, after } = kept.sure;
    [this.#sought, this.#kepts] = [timeText(us), after];
    [this.#latest, this.#earliest] = ["", timeText(us - backUs)];
  }

  /** Whether a line that is kept has not come yet. */
  get isSeeking(): boolean {
    return this.#sought !== undefined;
  }

  /** Seeks no more, as the line has not come: all lines with later times count as new. */
  giveUp(): void {
    [this.#sought, this.#kepts, this.#count] = [undefined, 0, 0];
    this.#afterLast();
  }

  #afterLast(): void {
    this.#latest = this.#kept ? `${timeText(this.#kept.lastUs)}999` : "";
    this.#earliest = this.#latest;
  }

  /** Begins another reading; returns the time to read from, if not from the beginning. */
  resume(): string | undefined {
    this.#toCome = undefined;
    return this.#earliest === "" ? undefined : `${this.#earliest.slice(0, 19)}Z`;
  }

  /** Counts the next line of this reading; false if it was read before, or is kept. */
  take(time: string): boolean {
    if (this.#hasCome(time)) return false;
    if (time > this.#latest) {
      [this.#latest, this.#earliest, this.#count] = [time, time, 1];
    } else {
      if (time < this.#earliest) this.#earliest = time;
      this.#count++;
    }
    if (this.#sought !== undefined) {
      if (time.startsWith(this.#sought)) this.#sought = undefined;
      return false;
    }
    if (this.#kepts === 0) return true;
    this.#kepts--;
    return false;
  }

  #hasCome(time: string): boolean {
    if (this.#toCome === undefined) {
      if (time < this.#latest) return true;
      this.#toCome = time === this.#latest ? this.#count : 0;
    }
    if (this.#toCome === 0) return false;
    this.#toCome--;
    return true;
  }
}

/** A time in microseconds as the cluster would write it. */
function timeText(us: number): string {
  const ms = new Date(Math.floor(us / 1_000)).toISOString().slice(0, 23);
  return `${ms}${String(us % 1_000).padStart(3, "0")}`;
}
