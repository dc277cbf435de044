import { kib, mib, minute, second } from "./units.js";

/** What workers print. */
export const logs = {
  logTailLines: 5,
  logTailBytes: 2 * kib,
  logFileBytesMax: 4 * mib, // a worker keeps two such files
  logLineBytesMax: 16 * kib,
  logLinesPerSecondMax: 2_000,
  logBytesPerSecondMax: 512 * kib,
  logFlushMs: 50, // what a worker says is written so soon: many lines at once
  logRepeatsToldMs: 10 * second, // a line that repeats for ever is told of so often
  logsBytesMax: 1_024 * mib, // of all workers' logs on a host; the oldest of those that ended go first
  logPruneMs: 10 * minute,
  logTailDefault: 100,
  logTailMax: 10_000,
  logReplyBytesMax: 16 * mib, // of lines in one reply, made in memory
  logSearchBytesMax: 64 * mib, // read for one request: a job that nobody knows is not looked for in 1 GB
  logReadsMax: 4, // such replies that are made at once; others wait
  logBlockBytes: 256 * kib, // so much of a file is read at a time; a line must fit
  logSecretsMax: 1_000, // of its jobs, masked in a worker's log: each costs every line a search; a batch holds as many
  logHideMs: 2 * second, // a job whose secret is to be masked waits this long for its provider; its worker polls meanwhile
  logPollMs: 100, // a followed file is looked at so often
  logGatherMs: 50, // lines of several workers are brought in order, and sent, so often
  logHoldMs: 150, // a line waits so long for others' that are older: as long as their way to us takes
  logBurstUs: 1_000, // an engine's lines of one microsecond are shown a microsecond apart: the last of them so late
  logBurstLines: 64, // read before the last lines that are wanted: the times of a burst are counted from its beginning
  logPassMs: 500, // a worker whose log ended and whose row lives is looked at again
  logFollowersMax: 256,
  logFollowersPerOwner: 64,
  logSourcesMax: 100, // workers of an endpoint that one reader follows at once
} as const;
