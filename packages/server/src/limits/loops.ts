import { hour, minute, second } from "./units.js";

/** What happens by itself, and time. */
export const loops = {
  netMs: 5 * second,
  loopGapMs: 20, // a loop that is rung all the time still lets others run
  clockSlewPerMinuteMs: second,
  clockTickMs: second,
  clockGapMs: 5 * second,
  clockKeepMs: minute,
  clockDoubtMsMax: 2 * hour, // a clock that was kept and is farther from the wall than this is not believed
} as const;
