import { hour, minute, second } from "./units.js";

/** Workers' lives. */
export const workers = {
  pingMs: 4 * second,
  workerSilenceMs: 30 * second,
  watchMs: second,
  watchGapMs: 100, // between two looks at all workers, however often they are rung for
  idlePingsMs: 2 * minute,
  absentAfterMs: 5 * second,
  stopPatienceMs: 5 * second,
  closePatienceMs: 30 * second,
  stoppedJobGraceMs: 2 * second, // nothing that such a worker might still report counts
  killPatienceMs: 2 * second, // after it, a killed worker's jobs are given back even if its end was not seen
  tendTurnMs: 200, // tending a single worker that takes longer is not waited for
  straysAtOnce: 16, // ended workers looked up at a time; there may be thousands
  straysGapMs: second, // until those that could not be looked up are looked up again
  sweepRoundsMax: 50, // a process that the system cannot end holds up nothing for longer
  sweepGapMs: 10, // between two sweeps for processes: killed ones may have forked meanwhile
  outputEndMs: 200, // for the last output of an ended worker: a process that was not found may hold its pipes open
  keeperLookMs: 250, // between two looks of the keeper for a server
  keeperEndMs: 100, // between two looks of an ending keeper at the workers it waits for
  provenMs: 5 * minute, // a worker that was up for this long has started well, even if no job came
  reservedMs: second, // an old worker's resources are kept for its successor
  fairPlacesMs: 2 * minute, // workers that ended this recently count as places that their users had
  stopGraceMsDefault: 30 * second,
  startTimeoutMsDefault: 15 * minute,
  awayMsDefault: 15 * minute,
  crashLoopStarts: 3,
  unreadyWorkersPerUserMax: 1_000, // that wait for a place or start; an endpoint without any gets one beyond it
  triedPerTurn: 16, // endpoints whose workers are given places, or are scaled, before others' calls get a turn
  releaseReadsMax: 1, // at a time for all callers: each is up to half a megabyte to decompress for the database and us
  releasesKept: 50, // of an endpoint, for rollbacks
  workersListedMax: 500, // of an endpoint, including those that ended
  flashBootMs: hour, // a worker that is paused for longer gives its memory back
  memoryLowShare: 0.1, // of a host's memory: with less free, paused workers are stopped
  memoryLookMs: 5 * second, // between two looks at it while a worker is paused
  resumeMs: 5 * second, // a resumed worker that says nothing for this long is replaced
  crashPauseMsMin: second,
  crashPauseMsMax: 5 * minute,
  handlerLookMs: second, // between two looks at a failing endpoint's handler directory
  handlerPatienceMsMax: 30 * second, // the wait before a look doubles with each change that did not help, up to this
  handlerEntriesMax: 500, // of the directory, at each look
  readyWorkersShown: 1_000, // ids in an endpoint's metrics
} as const;
