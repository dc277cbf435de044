import type { LogStream } from "../../domain/workers/log-line.js";

/** A line as the file has it: its microseconds, its pipe's number, and the text as it is. */
export const storedLine = (atUs: number, stream: LogStream, text: string): string =>
  `${String(atUs).padStart(16, "0")} ${stream === "stdout" ? 1 : 2} ${text}`;

const form = /^(\d{16}) ([12]) /;

/** Reads a stored line; undefined where it is of a file that was written before lines had times. */
export function readStored(text: string): { atUs: number; stream: LogStream; text: string } | undefined {
  const [head, at, pipe] = form.exec(text) ?? [];
  if (head === undefined) return undefined;
  return { atUs: Number(at), stream: pipe === "1" ? "stdout" : "stderr", text: text.slice(head.length) };
}

/** How far back a clock may be set before it is believed: until then the lines' times stand nearly still. */
const backUsMax = 5_000_000;

/** Gives each of a worker's lines a later time than the one before had. */
export class LineTimes {
  #lastUs = 0;

  next(nowUs: number): number {
    const isSetBack = nowUs < this.#lastUs - backUsMax;
    this.#lastUs = isSetBack ? nowUs : Math.max(nowUs, this.#lastUs + 1);
    return this.#lastUs;
  }
}
