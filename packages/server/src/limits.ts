const second = 1_000;
const minute = 60 * second;
const hour = 60 * minute;
const kib = 1_024;
const mib = 1_024 * kib;

/** Every bound of the system, its unit in its name. Durations are milliseconds. */
export const limits = {
  // the contract's
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
  grantShare: 0.02, // of a limit: what a server takes at once where several share it
  grantMs: second,
  webhookAttemptsMax: 3,
  webhookRetryMs: 10 * second,

  // jobs
  startsMax: 3, // a job that kills every worker must end
  idempotencyMs: 24 * hour,
  idempotencyKeyCharsMax: 255,
  requestsPageMax: 100,
  requestsPageDefault: 50,
  requestsPageBytesMax: 8 * mib, // of outputs: a page is one reply, made in memory
  requestsShortBytesMax: 256 * kib, // a page up to this size is read at once; a larger one into lent memory
  queuePositionMax: 1_000, // beyond it counting costs more than it tells
  purgeBatch: 500, // a batch must not hold the event loop for 50 ms
  sweepBatch: 200,
  sweepBytesMax: 20 * mib, // of texts: with the job that reaches it a batch is over; SQLite deletes these in 10 ms
  errorCharsMax: 100_000,
  jobFieldBytesMax: 16 * kib, // of a policy or an s3Config, which are parsed on the main thread
  webhookUrlCharsMax: 2_048,

  // JSON
  jsonDepthMax: 500, // stock Python clients stop near 1,000
  jsonKeysMax: 250_000, // an input with more stalls whoever parses it
  jsonThreadBytes: 256 * kib, // larger bodies are checked off the main thread, and stay bytes
  jsonBytesPerTurn: 512 * kib, // checked on the main thread in one turn of the event loop: a few milliseconds
  jsonBytesFree: 4 * kib, // smaller bodies are not counted: to move one to the thread takes longer than to check it
  jsonPieceBytes: 64 * kib, // of a large array, the elements in so much are looked for at a time
  jsonPartsBytes: 512 * kib, // so much at a time is moved there of a body that comes
  managementBytesMax: 256 * kib, // 20,000 variables of an environment take 45 ms to check and save, those of 1 MB 310 ms
  ignoredBytesMax: mib, // of a body that a route does not read

  // worker words
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
  unheardChunksMax: 1_000, // of a worker: jobs whose last chunk was stored without its worker hearing so
  chunkMetricsBytesMax: 16 * kib, // of a chunk: some counts and times; longer ones are left out, and the output is kept

  // streams
  streamReplyBytesMax: 8 * mib,
  streamHoldMs: second,
  streamHoldMsMax: 30 * second,
  streamGatherMs: 50,
  sseKeepAliveMs: 15 * second,
  openaiReadBytesMax: 256 * kib, // what is read at once of a stream that somebody reads as it comes
  openaiEventBytesMax: 2 * mib, // of an event that a worker has not ended: longer ones go on as they are

  // workers
  pingMs: 4 * second,
  workerSilenceMs: 30 * second,
  watchMs: second,
  idlePingsMs: 2 * minute,
  absentAfterMs: 5 * second,
  stopPatienceMs: 5 * second,
  closePatienceMs: 30 * second,
  stoppedJobGraceMs: 2 * second, // nothing that such a worker might still say counts
  killPatienceMs: 2 * second, // then the jobs of a worker that was to be killed are given back, though nobody saw its end
  tendTurnMs: 200, // the tending of one worker that takes longer is not waited for
  sweepRoundsMax: 50, // a process that the system cannot end keeps nobody waiting for longer
  sweepGapMs: 10, // between two sweeps for processes: those that were killed may have forked meanwhile
  provenMs: 5 * minute, // a worker that was up for so long has started well, though no job came
  reservedMs: second, // what an old worker had is kept for its successor
  stopGraceMsDefault: 30 * second,
  startTimeoutMsDefault: 15 * minute,
  awayMsDefault: 15 * minute,
  crashLoopStarts: 3,
  releaseReadsMax: 2, // at once: each is up to half a megabyte that the database and we unpack
  releasesKept: 50, // versions of an endpoint that can be brought back
  workersListedMax: 500, // of an endpoint, those that ended among them
  flashBootMs: hour, // a worker that is paused for longer gives its memory back
  memoryLowShare: 0.1, // of a host's memory: with less free, paused workers give theirs back
  memoryLookMs: 5 * second, // so often that is looked at while a worker is paused
  resumeMs: 5 * second, // a resumed worker that says nothing for so long is replaced
  crashPauseMsMin: second,
  crashPauseMsMax: 5 * minute,
  handlerLookMs: second, // between two looks at the handler's folder of an endpoint that pauses
  handlerPatienceMsMax: 30 * second, // the wait for such a change doubles with each that did not help, up to this
  handlerEntriesMax: 500, // of its folder, at each look
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
  containerProcessesMax: 4_096, // of one container; a handler needs hundreds, a fork bomb everything
  containerMemoryShare: 0.9, // of its machine's: the server and the engine need the rest
  containerOomScore: 500, // where memory runs out, containers go before the server
  engineAnswerMs: 20 * second, // an engine that says nothing for so long is away; making a container takes it seconds
  pullStallMs: 5 * minute, // a pull of which nothing comes for so long waits for a registry in vain
  enginePingMs: 2 * second, // before a host gives anything out it waits so long for its engine, each time it starts
  imageCheckMs: second, // a save waits no longer for what the container engine knows of an image
  engineRetryMs: second, // a container engine that is away is asked again
  workerRowKeptMs: 24 * hour,
  forgetMs: 10 * minute, // so often it is looked for what is kept no longer
  decisionKeptMs: 24 * hour,
  decisionsUnstoredMax: 100, // of one endpoint, while the store refuses them
  hostKeptMs: 24 * hour,
  deliveryKeptMs: 24 * hour,

  // the store
  queuedCallsMax: 20_000,
  queuedBytesMax: 256 * mib,
  groupCallsMax: 512,
  lockMs: 5 * second, // a group of writes waits so long for another process that holds the file's lock
  groupsOnTheWayMax: 2,
  checkpointWrites: 500, // a write is some 2 to 6 pages of the log
  checkpointAgainWrites: 50, // after a checkpoint that met a reader and left a part of the log
  checkpointBytes: 8 * mib, // of texts in the log: the writing thread would be some 40 ms at them, another one brings them
  checkpointTailPages: 1_000, // what was written meanwhile: a few milliseconds of the writing thread
  groupBytesMax: 4 * mib, // 20 ms of the disk's time; only one call that is larger alone takes longer
  largeCallBytes: 64 * kib, // larger calls are in groups of their own, which let small ones pass
  diskReserveFileBytes: 16 * mib, // given up when the disk is full after all
  diskReserveBytes: 64 * mib, // below it submissions are refused, so that finishing still works

  // PostgreSQL
  wordLanes: 3, // connections that write workers' words and our own; clients' calls have as many
  readersMax: 6,
  textReadersMax: 2, // the same for large texts, each some tens of milliseconds of the database's time
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

  // outgoing
  webhookTimeoutMs: 10 * second,
  webhookReplyBytesMax: 64 * kib,
  webhookBytesMax: 64 * mib, // of all large bodies that are being delivered; a larger one is alone
  webhookPieceBytes: mib, // of a body: between two pieces that are signed, others have their turn
  webhookConcurrency: 512, // an owner has at most as many as are free
  webhookPage: 500,
  webhookConcurrencyPerHost: 4,
  webhookConcurrencyPerSilentHost: 2, // a host may have healthy addresses beside one that hangs
  webhookSilentMs: 5 * second, // a host that has not answered after this is silent,
  webhookSilenceKeptMs: 5 * minute, // and has fewer places for so long, or until it answers
  webhookSilentHostsMax: 10_000, // the one that was called longest ago is forgotten
  webhookPauseMsMin: second, // what the database could not read or write for a webhook is tried again after this,
  webhookPauseMsMax: minute, // and after twice as long each time, up to this
  webhookPausesMax: 1_000, // deliveries whose pauses are remembered; a forgotten one is tried again at once
  webhookUnrecordedMax: 512, // attempts whose record could not be written; beyond it none is made

  // HTTP
  bodiesBytesMax: 192 * mib, // of all bodies that are being received or stored; beyond it 503
  bodiesOwnerShare: 3 / 4, // of that, what one owner may hold: the others can go on
  bodyBytesFree: 4 * kib, // of a body, so much is not counted: most are smaller, and come at once
  bodyStallMs: 30 * second, // a client that sends nothing of its body for so long is hung up on
  wordsBytesMax: 512 * mib, // the same of workers' results, which are refused last
  bodyBytesSmall: 256 * kib, // larger ones are read at a pace, and checked off the main thread
  bodyBelievedShare: 1 / 8, // of a body that has come: then all that it announced is given memory
  bodyTurnMs: 2, // large bodies must not keep the event loop from its work: they are read at
  bodyBytesPerTurn: mib, // this much in such a time, all together: 500 MB/s
  bodyBytesPerRead: 64 * kib, // a socket brings so much at a time
  textReadBytesMax: 16 * kib, // larger outputs, errors and progress are read apart from their job, in memory that is lent
  chunkTextBytesMax: 16 * kib, // larger chunks are read from SQLite as bytes: a text of letters beyond ASCII takes 7 times as long
  chunkReadBytesPerTurn: mib, // of chunks, from SQLite in one turn of the event loop: a millisecond
  textPieceBytes: 2 * mib, // read at a time from the database: a few milliseconds
  lentBytesMax: 256 * mib, // of large results, lists and logs on their way out; who finds no room waits, then gets 503
  lentStreamBytesMax: 96 * mib, // the same of streams as they come, and of logs
  lentInputBytesMax: 96 * mib, // the same of inputs that workers take
  lentOwnerShare: 5 / 8, // of each account, what one owner may have: others always find room
  lentWaitMs: 15 * second, // for room: longer than a stuck reader may keep its share
  lentWriteBytes: 256 * kib, // handed to a socket at a time
  lentBytesPerTurn: mib, // handed to all sockets in one turn of the event loop: well under a millisecond of copying
  readerStallMs: 30 * second, // a client that reads nothing of a large reply for so long is gone
  readerStallWantedMs: 7 * second, // the same while others wait for room: kernels take a slow reader's bytes in large steps
  readerLookMs: second, // readers' progress is looked at so often
  readerBytesPerSecondMin: 64 * kib, // a client that reads more slowly while others wait for room is hung up on
  headerBytesMax: 16 * kib,
  headSliceBytes: kib, // parsed at a time where a request begins: the shortest ones come to fifty
  bodySliceBytes: 4 * kib, // the same within a body, behind which other requests may stand
  droppedPartBytes: 32, // the size of parts that are dropped uncounted, as if all were: chunks of a byte take six
  bodyPartsPerTurn: 1_000, // of all bodies, parsed in one turn of the event loop: about half a millisecond
  lingerMs: 10 * second, // a refused upload may go on this long, and this far
  lingerBytesMax: 64 * mib,
  headersTimeoutMs: 20 * second,
  requestTimeoutMs: 5 * minute,
  keepAliveMs: 75 * second,
  connectionsMax: 20_000,
  hashesRemembered: 20_000, // of keys and workers' secrets: one for each connection at most
  keyCharsRemembered: 128, // ours are shorter; what is longer is somebody's garbage
  replyBytesMax: 2 * mib, // lent to each management request for its reply, or for the slices of a list
  listSliceItems: 50, // of a list, so many are made before others have their turn
  listSliceBytes: 64 * kib, // and so much of its text
  madeBytesPerTurn: 256 * kib, // of all lists that are being made
  graphqlTokensMax: 2_000, // 240 variables in the text of a query; all of them take 10 ms to validate, 4,000 up to 50 ms
  graphqlEntriesMax: 50_000, // of all lists of one query, environments too, under whatever aliases
  graphqlBytesMax: 8 * mib, // of its answer, which is made in memory
  graphqlSmallEntries: 1_000, // a query that lists more, or whose answer is larger than
  graphqlSmallBytes: 256 * kib, // this, is given
  graphqlLargeBytes: 32 * mib, // for its entries and its answer
  graphqlSelectionsMax: 300, // fields are compared with each other: these in 10 ms, 2,000 in 600 ms; introspection has 82
  graphqlDepthMax: 12,
  drainRetryAfterSeconds: 5,

  // load balancing
  gateWaitMs: 2 * minute, // a request waits so long for a worker
  gateWaitingMax: 1_000, // of one endpoint at one server: their bodies are not read meanwhile
  gateRingMs: 250, // the scaler looks at requests in flight at most so often
  gateTriesMax: 3, // a request that ends every worker must end
  gateHintsMax: 16, // a worker that goes on with 103s says nothing that helps
  gateHangUpMs: 2 * second, // a declined client is gone by then
  gateKeepAliveMs: 30 * second, // of quiet in a WebSocket, then its ends are asked whether they are there
  gateDialsMax: 10, // one whose workers are well, but take no connection, too
  gateKeptBytesMax: 64 * kib, // of the body of an idempotent request, so that it can be sent again
  gateIdleMs: second / 2, // connections to workers: shorter than servers keep them, or a request meets one being closed
  gateAheadBytesMax: 64 * kib, // of what a client says before its WebSocket is agreed to: it has to wait for that
  gateFirstBytesMax: 16 * kib, // the beginning of a reply, put together with its head
  gatePartsMax: 256, // of a reply, read before they are written: as one
  gatePartBytes: kib, // a part counts as so much of a turn's bytes, however small it is
  gateConnectMs: 2 * second,
  workerPortFirst: 20_000, // local workers' own HTTP servers listen from here up to the system's ports for outgoing connections
  workerPortsMin: 1_000, // with fewer ports than that between the two, workers get ports of outgoing connections
  workerPortDrawsMax: 50, // so do they where so many draws were all taken
  gateReplyHeaderBytesMax: 64 * kib,
  gateStallMs: minute, // a client that reads nothing of a reply for so long is gone
  gatePassOnMs: 5 * second, // another server takes or declines a request at once: it does not wait for a worker
  gateAvoidMs: 10 * second, // a server that could not be reached is tried again; requests wait at their own meanwhile
  gateMarkMs: 10 * second, // a request that is passed on is on its way no longer, the two clocks' difference included
  gateMarksMax: 200_000, // remembered, so that none is used twice; beyond it requests wait at their own server
  gateDrainMs: 30 * second, // WebSockets of a worker that is replaced may end by themselves
  healthMs: 5 * second,
  healthSoonMs: 250, // until a worker is ready, and once it has failed
  healthTimeoutMs: 2 * second,
  healthFailuresMax: 3,
  healthPatienceMs: 30 * second, // a worker that fails for so long is replaced

  // the host
  gpuAnswerMs: 15 * second, // nvidia-smi wakes the driver for each GPU; one that says nothing for so long hangs
  gpuTextBytesMax: 64 * kib, // of its answer: a line for each GPU
  gpusMax: 32, // asked for one by one where one of them spoils the answer for all
  stockMs: 10 * second, // so soon a GPU that fell off is noticed
  stockGapMs: 2 * second, // however many starts fail
  stockRareMs: minute, // on a machine without GPUs there is little to see
  stockDoubtsMax: 3, // looks that could not tell: a busy driver answers late now and then
  volumeMeasureMs: 5 * minute, // of a volume in use: reading its every name costs its disk something
  volumeGapMs: 30 * second, // workers may come and go every second
  volumeEntriesMax: 1_000_000, // of one volume; what is beyond is not counted
  volumeFoldersMax: 50_000, // that wait to be read, each with its name: 25 MB at most
  volumeCountMs: 2 * minute, // of one volume, while others wait; a million names on a fast disk
  quotaToolMs: minute, // marking a directory as a project looks at each file in it
  quotaWordsMax: 2 ** 20, // bytes that such a program may print
  volumeTurn: 256, // entries between two moments for others

  // loops
  netMs: 5 * second,
  loopGapMs: 20, // a loop that is rung all the time still lets others run
  clockSlewPerMinuteMs: second,
  clockTickMs: second,
  clockGapMs: 5 * second,
  clockKeepMs: minute,
  clockDoubtMsMax: 2 * hour, // a clock that was kept and is farther from the wall than this is not believed
} as const;

const relations: [boolean, string][] = [
  [limits.beatMs * 3 < limits.leaseMs, "an owner may miss two beats"],
  [limits.gateConnectMs + limits.clockSkewMsMax < limits.gateMarkMs, "a mark holds until its request arrives"],
  [limits.pingMs * 3 <= limits.workerSilenceMs, "a worker may miss two pings"],
  [limits.takeHoldMs < limits.workerSilenceMs, "a parked poll is renewed before its worker counts as silent"],
  [
    limits.takeHoldMs + limits.workerSilenceMs < limits.idlePingsMs,
    "a parked poll need not be told of while it is held",
  ],
  [limits.busyTakeHoldMs * 5 <= limits.executionTimeoutMsMin, "a result that waits for a take's answer is in time"],
  [limits.pingMs < limits.executionTimeoutMsMin, "a ping tells of a job that has not begun before its time is over"],
  [limits.allWorkersReadMs < limits.endedWorkersReadMs, "a worker's end is read"],
  [limits.runsyncBytesMax <= limits.outputBytesHard, "what can be submitted can be returned"],
  [limits.readerStallWantedMs * 2 < limits.lentWaitMs, "a stuck reader gives its share back before others give up"],
  [limits.lentWriteBytes <= limits.lentBytesPerTurn, "a turn has room for one write"],
  [limits.lentOwnerShare < 1, "one owner leaves room for others"],
  [2 * limits.managementBytesMax < limits.replyBytesMax, "a reply holds an endpoint with its template"],
  [limits.graphqlSmallBytes < limits.replyBytesMax, "a small answer fits what every management request is lent"],
  [3 * limits.graphqlBytesMax < limits.graphqlLargeBytes, "a large answer and its entries fit what it is lent"],
  [
    limits.takeBytesMax + limits.runsyncBytesMax <= limits.lentOwnerShare * limits.lentInputBytesMax,
    "an owner's workers can be handed a whole turn",
  ],
  [limits.takeLentWaitMs < limits.absentAfterMs, "a job whose input waits for room is not yet missed by pings"],
  [limits.connectionsMax * limits.bodyBytesFree <= limits.bodiesBytesMax, "what is not counted of bodies is bounded"],
  [limits.openaiBytesMax <= limits.bodiesOwnerShare * limits.bodiesBytesMax, "one owner may send the largest body"],
  [limits.outputBytesHard <= limits.bodiesOwnerShare * limits.wordsBytesMax, "and its worker the largest result"],
  [limits.groupBytesMax <= limits.queuedBytesMax, "a group fits the queue of calls"],
  [limits.largeCallBytes <= limits.groupBytesMax, "a group holds several large calls"],
  [limits.logLineBytesMax * 4 < limits.logBlockBytes, "a line fits what is read of a log at a time"],
  [limits.logFlushMs + limits.logPollMs <= limits.logHoldMs, "a line that is held has seen the older ones come"],
  [limits.webhookSilentMs < limits.webhookTimeoutMs, "a host that lets a call time out is silent"],
  [limits.webhookRetryMs < limits.webhookSilenceKeptMs, "a silent host is still known when it is called again"],
  [limits.handlerPatienceMsMax < limits.crashPauseMsMax, "a repaired handler is tried before the longest pause ends"],
  [limits.takeBatchMax <= limits.logSecretsMax, "the secrets of all jobs of a batch are masked"],
  [
    limits.chunkBytesMax + limits.chunkMetricsBytesMax <= limits.streamReplyBytesMax,
    "a reply holds at least one chunk with its metrics",
  ],
  [limits.jsonThreadBytes <= limits.jsonBytesPerTurn, "a turn has room for one body that need not go to the thread"],
];
for (const [holds, sentence] of relations) if (!holds) throw new Error(`limits.ts: ${sentence}`);

/** The countries of the contract: where a host may be, and what an endpoint may ask for. */
export const countries = ["CZ", "FR", "GB", "NO", "RO", "US"] as const;

/** The data centres that public clients name where they mean anywhere. */
export const dataCenters = [
  "EU-RO-1",
  "CA-MTL-1",
  "EU-SE-1",
  "US-IL-1",
  "EUR-IS-1",
  "EU-CZ-1",
  "US-TX-3",
  "EUR-IS-2",
  "US-KS-2",
  "US-GA-2",
  "US-WA-1",
  "US-TX-1",
  "CA-MTL-3",
  "EU-NL-1",
  "US-TX-4",
  "US-CA-2",
  "US-NC-1",
  "OC-AU-1",
  "US-DE-1",
  "EUR-IS-3",
  "CA-MTL-2",
  "AP-JP-1",
  "EUR-NO-1",
  "EU-FR-1",
  "US-KS-3",
  "US-GA-1",
] as const;
