import { hour, kib, mib, minute, second } from "./units.js";

/** Databases, and how long their records are kept. */
export const store = {
  queuedCallsMax: 20_000,
  queuedBytesMax: 256 * mib,
  groupCallsMax: 512,
  lockMs: 5 * second, // a group of writes waits this long for another process that holds the file's lock
  groupsOnTheWayMax: 2,
  checkpointWrites: 500, // a write is about 2 to 6 pages of the log
  checkpointAgainWrites: 50, // after a checkpoint that was blocked by a reader and left part of the log
  checkpointBytes: 8 * mib, // of texts in the log; copying them takes about 40 ms, so another thread does it
  checkpointTailPages: 1_000, // written meanwhile: a few milliseconds of the writing thread
  groupBytesMax: 2 * mib, // 10 ms of disk time: a small call waits no longer than that for large ones
  storedPieceBytes: mib, // larger texts go to the database in pieces of this size, each a statement of its own
  largeCallBytes: 64 * kib, // larger calls are grouped separately, so that small ones can pass
  hugeCallBytes: 2 * mib, // calls above this are grouped separately again, on PostgreSQL: 20 MB take some 400 ms
  walFlushMs: 10, // between two flushes of PostgreSQL's log while a huge call is written: at most a megabyte gathers
  diskReserveFileBytes: 16 * mib, // released when the disk fills up nevertheless
  diskReserveBytes: 64 * mib, // with less free space, submissions are refused, so that running jobs can still finish
  diskLookMs: second, // between two looks at the free space, which cost a system call
  wordLanes: 3, // connections for writes of workers and our own; clients' writes have as many
  writersMax: 10, // connections that write: those of the lanes, one for grants, one to spare, two that flush the log
  readersMax: 6,
  chunkReadersMax: 3, // of them for events, so that a hundred followers leave some to everyone else
  pageReadersMax: 2, // the same for slices of pages
  textReadersMax: 2, // the same for large texts, each of which takes some tens of milliseconds of the database's time
  changesAtOnce: 8, // jobs that clients' calls change at a time; owners take turns
  tableReadersMax: 2, // connections that read resources, deliveries and audit entries
  ownReadersMax: 2, // connections for the lock of changes, and what servers tell each other
  grantsAtOnce: 256, // names of shared rate limits that are granted requests in one commit
  endpointsSearchedAtOnce: 10_000, // for a page of deliveries: a statement has a bounded number of parameters
  rowsReadAtOnce: 500, // endpoints or templates changed by another server, read in one query
  rowBytesReadAtOnce: 128 * kib, // of their settings; 10,000 variables take 3 ms to parse
  endedWorkersReadMs: 2 * minute, // a server that reads all workers includes those that ended this recently
  allWorkersReadMs: 30 * second, // in between, only changed workers are read
  beatMs: second, // between two reports that a server is alive
  leaseMs: 5 * second, // a server owns a loop this long after its last report
  hostSilenceMs: 30 * second,
  changeSilenceMs: 10 * second, // a server silent for this long loses the lock for changes
  missGapMs: 100, // between two look-ups in the store for ids and keys that are not in memory
  missesMax: 256, // ids and keys looked up at a time
  clockSkewMsMax: second,
  databaseTimeMs: 10 * second, // between two looks at the database's clock
  hostLockMs: 15 * second, // a server that was killed may still count as connected for this long
  databaseStartMs: 30 * second, // a database that starts along with the server may take this long
  notifyBytesMax: 7_900,
  notifyGatherMs: 2,
  foundPerTurn: 128, // jobs found, and answered in one turn: a few milliseconds
  gatheredReads: 2, // queries of one kind under way at a time; calls that come meanwhile share the next one
  floorMs: 10 * second,
  statementMs: 15 * second,
  connectMs: 3 * second,
  connectionIdleMs: 10 * second,
  reconnectMs: 100,
  plansKeptMsMin: second, // statements are planned anew as tables grow
  plansKeptMsMax: minute,
  databaseRetryMs: 500,
  databasePatienceMs: 10 * second, // clients' calls wait this long for a database that is away, workers' twice as long
  workerRowKeptMs: 24 * hour,
  neverRanKeptMs: 10 * minute, // workers that ended before anything ran, in memory: there may be very many
  changesTrustedMs: 5 * minute, // a server that has not looked at changed rows for this long reads all rows
  chunksTrimmedAtOnce: 2_000, // chunks deleted in one commit: a job may have a million
  forgottenAtOnce: 500, // old records deleted in one commit
  forgetMs: 10 * minute, // between two searches for records that have outlived their time
  decisionKeptMs: 24 * hour,
  decisionsNotedAtOnce: 4, // changes of an endpoint's demand that are recorded though the scaler decides as before
  decisionNoteMs: 30 * second, // until one more of them may be
  decisionsUnstoredMax: 100, // of one endpoint, while the store refuses them
  hostKeptMs: 24 * hour,
  deliveryKeptMs: 24 * hour,
} as const;
