/** Every bound of the worker, with its unit in the name and its reason beside it. */
export const limits = {
  /** The server holds a take for 20 s; a poll that is silent for longer than this has lost its server. */
  pollSilenceMaxMs: 90_000,
  /** For the reply to a result or a chunk; a store that needs longer would have answered 503. */
  postSilenceMaxMs: 60_000,
  /** First and longest pause between two tries; short, so that a restarted server finds its workers at once. */
  pauseMinMs: 100,
  pauseMaxMs: 5_000,
  /** The longest `Retry-After` that is honoured, so that a wrong header cannot put a worker to sleep. */
  retryAfterMaxMs: 60_000,
  /** Results kept while the server is away; above this no job is taken, so that none has to be dropped. */
  resultsHeldMaxBytes: 256 * 1024 * 1024,
  /** Jobs held at once: their ids must fit into the URL of a ping (45 characters each, 16 KB in all). */
  jobsHeldMax: 300,
  /** Results in one batched call. */
  batchMaxResults: 100,
  batchMaxBytes: 4 * 1024 * 1024,
  /** Open calls with results; beyond this number results gather. */
  resultPostsMax: 4,
  /** How many chunks a generator may be ahead of the server. */
  chunksAheadMax: 64,
  chunksAheadMaxBytes: 1024 * 1024,
  /** How long a take stays open after SIGTERM, so that the server can answer it and no job is lost. */
  lastTakeMs: 1_000,
  /** A poll that returns empty sooner than this was not held; after a few in a row the worker slows down. */
  unheldPollMs: 50,
  unheldPollsMax: 5,
  /** The pause after a stop call that named no new job: the server repeats a job until it is over. */
  stopRepeatMs: 1_000,
  /** Two in a row, so that one wrong reply of a proxy ends nothing. */
  refusedPingsMax: 2,
  /**
   * How long a ping waits to learn whether the main thread is busy: its list stays much younger than the 5 s that
   * matter.
   */
  mainAnswerMaxMs: 500,
  /** How long the pinging thread sleeps first: less than the shortest interval, longer than a quick first job. */
  pingThreadRestMs: 300,
  /** Room for each id in the memory shared with the pinging thread; the server's own ids have at most 45. */
  sharedIdMaxBytes: 256,
  pingIntervalMinMs: 1_000,
  pingIntervalDefaultMs: 4_000,
  /** What a user sees of an error: the message and the relevant frames. */
  errorMaxBytes: 4096,
  /** A process that still has open handles this long after its worker has stopped is killed. */
  lingerMs: 5_000,
} as const;
