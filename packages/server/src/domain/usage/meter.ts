import type { Volume } from "../endpoints/volume.js";
import { isFrozen, type Worker } from "../workers/worker.js";

export const hourMs = 3_600_000;

/**
 * How long a worker has been billable so far, in milliseconds: from its start to its end, paused time excluded
 * (decisions: Usage). It only grows, and depends on the worker's row alone: whoever counts it gets the same number.
 */
export function billableMs(worker: Worker, now: number): number {
  const { startedAt, endedAt, pausedAt, pausedMs } = worker;
  if (startedAt === undefined) return 0;
  const until = Math.min(endedAt ?? now, isFrozen(worker) ? (pausedAt ?? now) : Number.POSITIVE_INFINITY);
  return Math.max(0, until - startedAt - pausedMs);
}

/** How much a volume has used so far, in GB times milliseconds: each size for as long as the volume had it. */
export const volumeGbMs = ({ size, sizedAt, gbMs }: Pick<Volume, "size" | "sizedAt" | "gbMs">, now: number): number =>
  gbMs + size * Math.max(0, now - sizedAt);

/** A part of an amount that falls into one hour; `at`: the hour's beginning. */
export interface HourShare {
  readonly at: number;
  readonly amount: number;
}

/**
 * Spreads an amount evenly over the time from `from` to `to`, by hours in UTC. The shares are whole numbers and add up
 * to the amount: 90 minutes from 1:30 to 3:00 give 30 to the hour of 1:00 and 60 to the hour of 2:00.
 */
export function spread(amount: number, from: number, to: number): HourShare[] {
  const shares: HourShare[] = [];
  const span = Math.max(1, to - from);
  let left = amount;
  for (let at = hourOf(Math.min(from, to - 1)); at < to; at += hourMs) {
    const isLast = at + hourMs >= to;
    const part = isLast ? left : Math.round((amount * (Math.min(to, at + hourMs) - Math.max(from, at))) / span);
    const given = Math.min(left, part);
    if (given > 0) shares.push({ at, amount: given });
    left -= given;
  }
  return shares;
}

const hourOf = (at: number): number => Math.floor(at / hourMs) * hourMs;

/** The hours, days and months in UTC for which usage is added up. */
export const spans = ["hour", "day", "month"] as const;
export type Span = (typeof spans)[number];

/** The beginning of the hour, day or month in UTC that a time is in. */
export function beginningOf(span: Span, at: number): number {
  if (span === "hour") return hourOf(at);
  if (span === "day") return Math.floor(at / (24 * hourMs)) * 24 * hourMs;
  const date = new Date(at);
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth());
}

/** The beginning of the hour, day or month after one that begins at `at`. */
export function endOf(span: Span, at: number): number {
  if (span !== "month") return at + (span === "hour" ? hourMs : 24 * hourMs);
  const date = new Date(at);
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1);
}

/**
 * A stretch of whole hours, days or months: from the beginning of the first to the beginning of the one after the last.
 * One that is taken away counts against the others.
 */
export interface Stretch {
  readonly span: Span;
  readonly from: number;
  readonly to: number;
  readonly isTaken?: true;
}

const finer = { month: "day", day: "hour" } as const;

/**
 * A few stretches that add up to a time, whose ends are rounded down to hours. A year in UTC is 12 months. May in Berlin
 * begins two hours before May in UTC: it is that month with two hours more at its beginning, and two hours less at its
 * end.
 */
export function cover(from: number, to: number): Stretch[] {
  return between("month", hourOf(from), hourOf(to));
}

function between(span: Span, from: number, to: number): Stretch[] {
  if (from >= to) return [];
  if (span === "hour") return [{ span, from, to }];
  const [begin, end] = [nearest(span, from), nearest(span, to)];
  if (begin >= end) return between(finer[span], from, to);
  return [...edge(finer[span], from, begin), { span, from: begin, to: end }, ...edge(finer[span], end, to)];
}

/** What lies between a time and a beginning beyond it, or what is taken away up to one before it. */
const edge = (span: Span, from: number, to: number): Stretch[] =>
  from <= to ? between(span, from, to) : between(span, to, from).map(taken);

const taken = ({ isTaken, ...stretch }: Stretch): Stretch => (isTaken ? stretch : { ...stretch, isTaken: true });

function nearest(span: Span, at: number): number {
  const begin = beginningOf(span, at);
  const end = endOf(span, begin);
  return at - begin <= end - at ? begin : end;
}
