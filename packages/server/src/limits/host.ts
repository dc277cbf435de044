import { gib, kib, mib, minute, second } from "./units.js";

/** This machine: GPUs, volumes and quotas. */
export const host = {
  memoryBytes: 2 * gib, // that a server needs, however many callers send, ask for and are sent large things at once
  memoryBytesAtRest: 256 * mib, // of that, with no caller
  gpuAnswerMs: 15 * second, // nvidia-smi wakes the driver for each GPU; after this long it hangs
  gpuTextBytesMax: 64 * kib, // of nvidia-smi's output: one line per GPU
  gpusMax: 32, // queried one by one if one of them spoils the output for all
  stockMs: 10 * second, // a GPU that disappears is noticed within this time
  stockGapMs: 2 * second, // however many starts fail
  stockRareMs: minute, // a machine without GPUs has little to look at
  stockDoubtsMax: 3, // looks in a row that could not tell: a busy driver sometimes answers late
  volumeMeasureMs: 5 * minute, // of a volume in use: reading every name costs its disk something
  volumeGapMs: 30 * second, // workers may come and go every second
  volumeEntriesMax: 1_000_000, // per volume; beyond it nothing is counted
  volumeFoldersMax: 50_000, // waiting to be read, each with its name: 25 MB at most
  volumeCountMs: 2 * minute, // per volume, while others wait; enough for a million names on a fast disk
  quotaToolMs: minute, // marking a directory as a project visits every file in it
  quotaWordsMax: 2 ** 20, // bytes that a quota program may print
  volumeTurn: 256, // entries between two yields to other work
} as const;
