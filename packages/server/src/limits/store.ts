import { hour, kib, mib, minute, second } from "./units.js";

/** Databases, and how long what is in them is kept. */
export const store = {
  queuedCallsMax: 20_000,
  queuedBytesMax: 256 * mib,
  groupCallsMax: 512,
  lockMs: 5 * second, // a group of writes waits so long for another process that holds the file's lock
  groupsOnTheWayMax: 2,
  checkpointWrites: 500, // a write is some 2 to 6 pages of the log
  checkpointAgainWrites: 50, // after a checkpoint that met a reader and left a part of the log
  checkpointBytes: 8 * mib, // of texts in the log: the writing thread would be some 40 ms at them, another one brings them
  checkpointTailPages: 1_000, // what was written meanwhile: a few milliseconds of the writing thread
  groupBytesMax: 2 * mib, // 10 ms of the disk's time: small calls wait no longer for large ones
  storedPieceBytes: mib, // SQLite stores larger texts in pieces of this size, each a write of its own
  largeCallBytes: 64 * kib, // larger calls are in groups of their own, which let small ones pass
  diskReserveFileBytes: 16 * mib, // given up when the disk is full after all
  diskReserveBytes: 64 * mib, // below it submissions are refused, so that finishing still works
  wordLanes: 3, // connections that write workers' words and our own; clients' calls have as many
  readersMax: 6,
  textReadersMax: 2, // the same for large texts, each some tens of milliseconds of the database's time
  rowsReadAtOnce: 500, // endpoints or templates changed by another server, in one query
  rowBytesReadAtOnce: 128 * kib, // of their settings; 10,000 variables take 3 ms to parse
  endedWorkersReadMs: 2 * minute, // of workers that ended, a server that looks again reads these
  allWorkersReadMs: 30 * second, // between two such looks only those that were written are read
  beatMs: second, // a server says that it lives
  leaseMs: 5 * second, // and owns a loop so long after it said so
  hostSilenceMs: 30 * second,
  missGapMs: 100, // what is not known is looked for in the store at most so often
  missesMax: 256, // and so much of it at once
  clockSkewMsMax: second,
  hostLockMs: 15 * second, // a server that was killed may count as connected so long
  databaseStartMs: 30 * second, // a database that starts with us may take so long
  notifyBytesMax: 7_900,
  notifyGatherMs: 2,
  gatheredReads: 2, // queries of one kind on their way at once: what comes meanwhile is one query
  floorMs: 10 * second,
  statementMs: 15 * second,
  connectMs: 3 * second,
  connectionIdleMs: 10 * second,
  reconnectMs: 100,
  plansKeptMsMin: second, // statements are planned anew as the tables grow
  plansKeptMsMax: minute,
  databaseRetryMs: 500,
  databasePatienceMs: 10 * second, // clients' calls wait so long for a database that is away, workers' words twice as long
  workerRowKeptMs: 24 * hour,
  forgetMs: 10 * minute, // so often it is looked for what is kept no longer
  decisionKeptMs: 24 * hour,
  decisionsUnstoredMax: 100, // of one endpoint, while the store refuses them
  hostKeptMs: 24 * hour,
  deliveryKeptMs: 24 * hour,
} as const;
