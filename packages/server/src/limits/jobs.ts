import { hour, kib, mib, second } from "./units.js";

/** Jobs, their results and their streams. */
export const jobs = {
  startsMax: 3, // a job that kills every worker must come to an end
  idempotencyMs: 24 * hour,
  idempotencyKeyCharsMax: 255,
  tracedJobsWaiting: 10_000, // that have ended, until their traces are read: beyond it they have none
  tracedSpansMax: 20_000, // that wait for the collector
  traceBatchMs: second,
  traceExportMs: 5 * second,
  requestsPageMax: 100,
  requestsPageDefault: 50,
  requestsPageBytesMax: 8 * mib, // of outputs: a page is a single reply, made in memory
  recentSearched: 5_000, // of an endpoint's newest jobs, for those that a worker has taken
  timingsOf: 2_000, // of an endpoint's newest jobs
  timingBuckets: 60,
  replayedJobs: 1_000, // in a what-if of the scaler: a step costs as much as there are workers
  replayedSteps: 1_000_000, // times workers: with thousands of workers fewer jobs are replayed
  replaysPerOwner: 4, // that may wait
  replayStartMs: 2_000, // of a worker, where none has started yet
  happeningsShown: 100, // of one job; each retry adds one
  requestsSliceBytes: 256 * kib, // read and made in one turn; a page up to this size is read directly, a larger one into borrowed memory
  searchedRows: 4_000, // jobs that a search scans at a time on SQLite: about 2 ms
  queuePositionMax: 1_000, // beyond this, counting costs more than it tells
  purgeBatch: 500, // a larger batch would hold the event loop for 50 ms
  sweepBatch: 200,
  expireGapMs: second, // between two sweeps, so that each finds many jobs
  timeOutGapMs: 250, // between two looks for jobs that have run for too long
  sweepBytesMax: 20 * mib, // of texts: a batch ends with the job that reaches it; SQLite deletes these in 10 ms
  errorCharsMax: 100_000,
  jobFieldBytesMax: 16 * kib, // of a policy or an s3Config, which are parsed on the main thread
  webhookUrlCharsMax: 2_048,
  outputBytesMax: 20 * mib,
  outputBytesHard: 100 * mib,
  takeHoldMs: 20 * second,
  busyTakeHoldMs: second, // some workers post a result only after the reply to a concurrent take
  takeBatchMax: 1_000,
  heldJobsMax: 2_000, // by one worker; it gets no more until it has reported some
  turnAsksMax: 256, // polls served in one turn of a line
  takeLentWaitMs: 2 * second, // a take waits this long for memory for its inputs; then its jobs go back
  takeReadBytesMax: 256 * kib, // larger inputs are read separately, into borrowed memory
  takeBytesMax: 16 * mib, // of inputs: a turn ends with the job that reaches it, and the next one goes on
  doneBatchMax: 1_000,
  idCharsMax: 64, // of a job; ours have 38
  doneGroupMax: 32, // of them, settled at a time: each is a call to the writer
  doneGroupBytes: mib, // of a batch of results, checked in one turn: about 3 ms
  memberBytesMax: kib, // a status, a stopPod or an id in a result; a longer one counts as absent
  chunkNameCharsMax: 64, // fits a UUID and a number
  unheardChunksMax: 1_000, // per worker: jobs whose last chunk was stored but not acknowledged
  chunkMetricsBytesMax: 16 * kib, // of a chunk: some counts and times; longer ones are dropped, and the output is kept
  streamReplyBytesMax: 8 * mib,
  streamHoldMs: second,
  streamHoldMsMax: 30 * second,
  streamGatherMs: 50,
  sseKeepAliveMs: 15 * second,
  openaiReadBytesMax: 256 * kib, // read at a time from a stream that is followed live
  openaiEventBytesMax: 2 * mib, // of an event that a worker has not ended; longer ones are passed on as they are
  openaiHeldCharsMax: 32 * mib, // of such events of all streams; beyond it, every event is passed on as it comes
} as const;
