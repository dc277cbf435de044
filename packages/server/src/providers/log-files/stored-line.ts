import type { LogStream } from "../../domain/workers/log-line.js";

/** A line as stored in a file: microseconds, pipe number, and the text unchanged. */
export const storedLine = (atUs: number, stream: LogStream, text: string): string =>
  `${String(atUs).padStart(16, "0")} ${stream === "stdout" ? 1 : 2} ${text}`;

const form = /^(\d{16}) ([12]) /;

/** Parses a stored line; undefined for lines of files written before lines had times. */
export function readStored(text: string): { atUs: number; stream: LogStream; text: string } | undefined {
  const [head, at, pipe] = form.exec(text) ?? [];
  if (head === undefined) return undefined;
  return { atUs: Number(at), stream: pipe === "1" ? "stdout" : "stderr", text: text.slice(head.length) };
}

/**
 * How far back the clock may jump, in microseconds, before lines follow it: until then their times nearly stand still.
 */
const backUsMax = 5_000_000;

/** Gives each line of a worker a later time than the one before. */
export class LineTimes {
  #lastUs = 0;

  next(nowUs: number): number {
    const isSetBack = nowUs < this.#lastUs - backUsMax;
    this.#lastUs = isSetBack ? nowUs : Math.max(nowUs, this.#lastUs + 1);
    return this.#lastUs;
  }
}
