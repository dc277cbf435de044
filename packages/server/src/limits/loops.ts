import { hour, minute, second } from "./units.js";

/** Loops and time. */
export const loops = {
  netMs: 5 * second,
  startsToldMax: 200, // workers of which a server tells the others what it does to start them
  startWordsMax: 500, // characters of that for one worker
  loopGapMs: 20, // a loop that is rung all the time must let others run
  loopGapMsMin: 1, // of loops that a caller waits for
  clockSlewPerMinuteMs: second,
  clockTickMs: second,
  clockGapMs: 5 * second,
  clockKeepMs: minute,
  clockDoubtMsMax: 2 * hour, // a saved time farther than this from the system clock is not believed
} as const;
