import { kib, mib, minute, second } from "./units.js";

/** Workers' logs. */
export const logs = {
  logTailLines: 5,
  logTailBytes: 2 * kib,
  logFileBytesMax: 4 * mib, // a worker keeps two files of this size
  logLineBytesMax: 16 * kib,
  logLinesPerSecondMax: 2_000,
  logBytesPerSecondMax: 512 * kib,
  logFlushMs: 50, // output is written after this long, many lines at a time
  logRepeatsToldMs: 10 * second, // interval of the notes on a line that repeats for ever
  logsBytesMax: 1_024 * mib, // of all workers' logs on a host; the oldest of ended workers go first
  logPruneMs: 10 * minute,
  logTailDefault: 100,
  logTailGrouped: 1_000, // of a reply in one JSON object
  logTailMax: 10_000,
  logReplyBytesMax: 16 * mib, // of lines in a reply, which is made in memory
  logSearchBytesMax: 64 * mib, // read per request, so that a search for an unknown job does not read 1 GB
  logReadsMax: 4, // such replies made at a time; others wait
  logFramesPerTurn: 500, // of an engine, parsed in one turn: about 3 ms
  logBlockBytes: 256 * kib, // read from a file at a time; a line must fit
  logSecretLinesMax: 4_000, // lines of secrets, in all forms, masked one by one in a worker's log; of jobs, the newest
  logMaskUnitsMax: 8_000_000, // text in UTF-16 units times texts masked in one turn: about 4 ms
  logParseFactor: 60, // parsing a line of JSON takes as long as searching it for this many texts
  logSecretsMax: 1_000, // newest secrets of jobs masked in a worker's log: each costs every line a search; fits a batch
  jobSecretsOverlap: 1_000, // numbers of noted secrets that are read again: more are not being written at once
  jobSecretsGapMs: 100, // between two looks for newly noted secrets, while workers print
  jobSecretsLateMs: 10_000, // a noted secret is seen by all servers after so long
  jobSecretsRead: 100, // noted secrets of a worker's jobs read in one query
  logHideMs: 2 * second, // a job whose secret must be masked waits this long for the provider; its poll is held
  logPollMs: 100, // between two looks at a followed file
  logGatherMs: 50, // between two rounds of sorting and sending lines of several workers
  logHoldMs: 150, // a line waits this long for older ones of other workers: as long as lines take to get here
  logBurstUs: 1_000, // an engine's lines of one microsecond are shown a microsecond apart, up to this long
  logBurstLines: 64, // read before the first wanted line: the times of a burst are counted from its beginning
  logRepeatsWithinMs: 30 * second, // a line from an engine that is older than the last line by at most this is a repeat
  logPassMs: 500, // before a worker is looked at again whose log has ended while its row is live
  logFollowersMax: 256,
  logFollowersPerOwner: 64,
  logHeldBytesMax: mib, // of lines read for a follower and not taken yet
  logElsewhereBeginMs: 5 * second, // a server that is asked for a log answers before it reads, or hangs
  logElsewhereMs: 60 * second, // a server that sends no byte of a log for so long is away; it sends one each 15 s
  logElsewhereCharsMax: mib, // of a line between servers: the longest, with each character escaped
  logSourcesMax: 100, // workers of one endpoint that one reader follows at a time
  logsForServersMax: 4_000, // workers' logs that one server reads for others: each is a connection and a file
  logsForServersPerOwner: 1_000, // ten readers' worth: what counts there is workers, not readers
  newsRestMs: 250, // what changes is told to dashboards at most this often
  newsElsewhereMs: 5 * second, // between two reminders to look at everything, while something changes at other servers
  newsItemsMax: 200, // endpoints in one event: each follower looks through them
  newsFollowersMax: 512,
  newsFollowersPerOwner: 64,
  terminalHoldMs: 200, // a line waits this long for older ones, which come through workers' logs
  terminalLinesHeld: 2_000,
  terminalNamesMax: 4_000, // of workers, and of jobs that run, which a terminal remembers
  terminalErrorCharsMax: 65_536, // of a job's error that is read for its traceback
  terminalTraceLines: 40,
} as const;
