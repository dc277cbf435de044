import { turns } from "../../turns.js";

interface Whole {
  /** Writes the reply. */
  finish(): void;
  fail(error: Error): void;
}

const lane = ["whole replies"] as const;
const whole: Whole[] = [];

/**
 * Replies that arrived whole are written back to back, once everything available was read: clients are then woken once
 * for many replies, not between one and the next. Many of them take turns.
 */
export function writeSoon(reply: Whole): void {
  if (whole.push(reply) === 1) setImmediate(writeAll);
}

function writeAll(): void {
  for (const reply of whole.splice(0)) {
    if (turns.isOver) turns.wait(lane, () => write(reply));
    else write(reply);
  }
}

function write(reply: Whole): void {
  try {
    reply.finish();
  } catch (error) {
    reply.fail(error as Error);
  }
}
