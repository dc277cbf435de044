import { hour, minute, second } from "./units.js";

/** The lives of workers. */
export const workers = {
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
} as const;
