import { readlinkSync } from "node:fs";
import { getPriority, setPriority } from "node:os";
import { basename } from "node:path";
import { parentPort, workerData } from "node:worker_threads";
import { free, Joined } from "./joined.js";
import type { Bounds, Span } from "./scan.js";
import { cutOutput } from "./split.js";
import { digestOf, scanUtf8 } from "./utf8.js";

type Bytes = Uint8Array<ArrayBuffer>;

/** A message to the thread. A text comes whole with its task, or in pieces before it. */
export type Task =
  | { readonly no: number; readonly piece: Bytes; readonly announced: number }
  | { readonly no: number; readonly dropped: true }
  | { readonly no: number; readonly bytes?: Bytes; readonly bounds: Bounds; readonly isDigested?: boolean }
  | { readonly no: number; readonly bytes: Bytes; readonly span: Span; readonly pieceBytes: number };

const nothing = new Uint8Array(0);

/** Incomplete texts, by number. */
const coming = new Map<number, Joined>();

giveWay((workerData as { readonly nice: number }).nice);
parentPort?.on("message", (task: Task) => {
  const { no } = task;
  if ("piece" in task) {
    const joined = coming.get(no) ?? new Joined(task.announced);
    coming.set(no, joined);
    joined.add(task.piece);
    if (joined.whole().buffer !== task.piece.buffer) free(task.piece);
    return;
  }
  if ("dropped" in task) {
    coming.get(no)?.drop();
    coming.delete(no);
    return;
  }
  const bytes = ("bytes" in task ? task.bytes : coming.get(no)?.whole()) as Bytes;
  coming.delete(no);
  if ("bounds" in task) {
    const scan = scanUtf8(bytes, task.bounds);
    const digest = task.isDigested ? digestOf(bytes) : undefined;
    parentPort?.postMessage({ no, bytes, scan, digest }, [bytes.buffer]);
    return;
  }
  const { start, end } = task.span;
  const pieces = cutOutput(bytes.subarray(start, end), task.pieceBytes);
  free(bytes);
  parentPort?.postMessage(
    { no, bytes: nothing, pieces },
    pieces.map(({ buffer }) => buffer),
  );
});

/** Lowers this thread's priority. Elsewhere than on Linux a thread has none of its own. */
function giveWay(nice: number): void {
  if (nice === 0 || process.platform !== "linux") return;
  try {
    const thread = Number(basename(readlinkSync("/proc/thread-self")));
    setPriority(thread, Math.min(19, getPriority(thread) + nice));
  } catch {
    // it works as well, only less considerately
  }
}
