import { hour, mib, minute, second } from "./units.js";

/** The contract's numbers. */
export const contract = {
  runBytesMax: 10 * mib,
  runsyncBytesMax: 20 * mib,
  openaiBytesMax: 20 * mib,
  chunkBytesMax: mib,
  waitMsMin: second,
  waitMsMax: 300 * second,
  waitMsDefault: 90 * second,
  runRetentionMs: 30 * minute,
  runsyncRetentionMs: minute,
  runsyncRetentionMsMax: 5 * minute,
  executionTimeoutMsMin: 5 * second,
  executionTimeoutMsMax: 7 * 24 * hour,
  executionTimeoutMsDefault: 10 * minute,
  ttlMsMin: 10 * second,
  ttlMsMax: 7 * 24 * hour,
  ttlMsDefault: 24 * hour,
  rateWindowMs: 10 * second,
  grantShare: 0.02, // of a limit: how much a server takes at a time if several servers share it
  grantMs: second,
  webhookAttemptsMax: 3,
  webhookRetryMs: 10 * second,
} as const;
