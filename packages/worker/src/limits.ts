/** Every bound of the worker, with its unit in the name and its reason beside it. */
export const limits = {
  /** A take is held 20 s by the server; a poll that is silent for longer than this has lost its server. */
  pollSilenceMaxMs: 90_000,
  /** A reply to a result or a chunk; a store that needs longer would have answered 503. */
  postSilenceMaxMs: 60_000,
  /** First and longest pause between two tries; short enough that a restarted server finds its workers at once. */
  pauseMinMs: 100,
  pauseMaxMs: 5_000,
  /** The longest `Retry-After` that is honoured: a wrong header must not put a worker to sleep. */
  retryAfterMaxMs: 60_000,
  /** Results kept while the server is away; above this no job is taken, so that none has to be dropped. */
  resultsHeldMaxBytes: 256 * 1024 * 1024,
  /** Jobs held at once: their ids must fit into the URL of a ping (45 characters each, 16 KB in all). */
  jobsHeldMax: 300,
  /** Results of one gathered call. */
  batchMaxResults: 100,
  batchMaxBytes: 4 * 1024 * 1024,
  /** Calls with results that are open at once; beyond them results gather. */
  resultPostsMax: 4,
  /** Chunks that a generator may be ahead of the server. */
  chunksAheadMax: 64,
  chunksAheadMaxBytes: 1024 * 1024,
  /** How long a take stays open after SIGTERM, so that the server may answer it rather than lose it. */
  lastTakeMs: 1_000,
  /** A poll answered empty sooner than this was not held; after a few of those in a row the worker slows down. */
  unheldPollMs: 50,
  unheldPollsMax: 5,
  /** The pause after a stop call that named nothing new: the server repeats a job until it is over. */
  stopRepeatMs: 1_000,
  /** Two in a row, so that one wrong reply of a proxy ends nothing. */
  refusedPingsMax: 2,
  /** How long a ping waits to hear whether the main thread is busy: its list stays far younger than the 5 s that count. */
  mainAnswerMaxMs: 500,
  /** How long the thread that pings rests at first: less than the shortest interval, longer than a quick first job. */
  pingThreadRestMs: 300,
  /** Room for each id in the memory shared with that thread; the server's own ids have at most 45. */
  sharedIdMaxBytes: 256,
  pingIntervalMinMs: 1_000,
  pingIntervalDefaultMs: 4_000,
  /** What a user sees of an error: a message and the frames that matter. */
  errorMaxBytes: 4096,
  /** A process that still has open handles this long after its worker has stopped is ended. */
  lingerMs: 5_000,
} as const;
