import { kib, minute, second } from "./units.js";

/** This machine: GPUs, volumes and quotas. */
export const host = {
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
} as const;
