import { hour, kib, mib, second } from "./units.js";

/** Jobs, what is said of them, and their streams. */
export const jobs = {
  startsMax: 3, // a job that kills every worker must end
  idempotencyMs: 24 * hour,
  idempotencyKeyCharsMax: 255,
  requestsPageMax: 100,
  requestsPageDefault: 50,
  requestsPageBytesMax: 8 * mib, // of outputs: a page is one reply, made in memory
  requestsShortBytesMax: 256 * kib, // a page up to this size is read at once; a larger one into lent memory
  listedRowsPerTurn: 8_000, // jobs that all searches together scan in one turn on SQLite: about 4 ms
  listedRowsOfPage: 2_000, // the cost of one page in scanned jobs, since it joins texts
  queuePositionMax: 1_000, // beyond it counting costs more than it tells
  purgeBatch: 500, // a batch must not hold the event loop for 50 ms
  sweepBatch: 200,
  sweepBytesMax: 20 * mib, // of texts: with the job that reaches it a batch is over; SQLite deletes these in 10 ms
  errorCharsMax: 100_000,
  jobFieldBytesMax: 16 * kib, // of a policy or an s3Config, which are parsed on the main thread
  webhookUrlCharsMax: 2_048,
  outputBytesMax: 20 * mib,
  outputBytesHard: 100 * mib,
  takeHoldMs: 20 * second,
  busyTakeHoldMs: second, // some workers post a result only once the take beside it is answered
  takeBatchMax: 1_000,
  turnAsksMax: 256, // of those who stand in a line, so many are asked for at once
  takeLentWaitMs: 2 * second, // a take waits no longer for room for its inputs: then its jobs go back
  takeReadBytesMax: 256 * kib, // larger inputs are read apart from their job, in memory that is lent
  takeBytesMax: 16 * mib, // of inputs: with the job that reaches it a turn is over, and the next one goes on
  doneBatchMax: 1_000,
  doneGroupBytes: mib, // of a batch's words, checked in one turn: some 3 ms
  memberBytesMax: kib, // of a word, a member that is parsed: a status, a stopPod or an id; a longer one counts as absent
  chunkNameCharsMax: 64, // a UUID and a number fit
  unheardChunksMax: 1_000, // per worker: jobs whose last chunk was stored but not acknowledged
  chunkMetricsBytesMax: 16 * kib, // of a chunk: some counts and times; longer ones are left out, and the output is kept
  streamReplyBytesMax: 8 * mib,
  streamHoldMs: second,
  streamHoldMsMax: 30 * second,
  streamGatherMs: 50,
  sseKeepAliveMs: 15 * second,
  openaiReadBytesMax: 256 * kib, // what is read at once of a stream that somebody reads as it comes
  openaiEventBytesMax: 2 * mib, // of an event that a worker has not ended: longer ones go on as they are
} as const;
