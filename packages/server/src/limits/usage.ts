import { day, minute } from "./units.js";

/** What is counted, and the bills for it. */
export const usage = {
  usageTickMs: minute, // how much of a bill a crash may delay, never lose
  usageBankedAtOnce: 50, // workers or volumes in one commit
  usageMarksKeptMs: 3 * day, // of workers and volumes that are gone: longer than their rows are kept
  billBucketsMax: 2_000,
  billRecordsMax: 20_000,
  billStretches: 200, // of time, in one statement
  billStretchesOfAll: 20, // the same if it adds up each of thousands of endpoints
  billReadsMax: 1, // at a time for all callers, so that other reads find a connection
  billRangeMsDefault: 30 * day,
  priceMax: 1_000_000, // for one of something, an hour
  pricedGpusMax: 500,
  quotaMax: 1_000_000_000,
  queueRoomKnownMs: 250, // how old the number of waiting jobs may be that a quota is compared with
  weightMin: 0.01,
  weightMax: 100, // times the share of a user of weight 1
} as const;
