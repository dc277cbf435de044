/**
 * How far a log has been read. It is read on from a whole second, so lines come again. Lines may have the same time, as
 * all do that a runtime has read at once, and a time before that of the line above: those of the other pipe, or after a
 * clock was set back. So lines are counted from the one with the latest time on.
 */
export class LogPosition {
  /** The latest time of a line; later times are greater texts. */
  #latest: string;
  /** How many lines have been read from that line on, and the earliest of their times. */
  #count = 0;
  #earliest: string;
  /** Of the lines that are counted, how many have not come again in this reading; undefined before the first of them. */
  #toCome: number | undefined;

  constructor(latest = "") {
    this.#latest = latest;
    this.#earliest = latest;
  }

  /** Begins another reading; returns the time to read from, if not from the beginning. */
  resume(): string | undefined {
    this.#toCome = undefined;
    return this.#earliest === "" ? undefined : `${this.#earliest.slice(0, 19)}Z`;
  }

  /** Counts the next line of this reading; false if it was read before. */
  take(time: string): boolean {
    if (this.#toCome === undefined) {
      if (time < this.#latest) return false;
      this.#toCome = time === this.#latest ? this.#count : 0;
    }
    if (this.#toCome > 0) {
      this.#toCome--;
      return false;
    }
    if (time > this.#latest) {
      [this.#latest, this.#earliest, this.#count] = [time, time, 1];
    } else {
      if (time < this.#earliest) this.#earliest = time;
      this.#count++;
    }
    return true;
  }
}
