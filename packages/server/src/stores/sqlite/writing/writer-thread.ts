import { parentPort, workerData } from "node:worker_threads";
import { diskReserve } from "../disk/disk-reserve.js";
import { openForWriting } from "../driver.js";
import { type Parcel, packed, unpacked } from "./parcel.js";
import type { Write } from "./transactions.js";
import { writes } from "./writes.js";

/** The thread's answer to each group, in order. */
export type Answer = { readonly outcomes: Parcel } | { readonly fatal: string };

/** Verbs whose results may hold large texts. */
const bulky = new Set(["take", "handOut", "statements"]);

const { path } = workerData as { path: string };
const db = openForWriting(path);
const transactions = writes(db, diskReserve(path));

/** Nothing is written after the disk has failed: its content is unknown. */
let failed = false;

/** `hold`: leave checkpoints to the checkpoint thread; `finish`: that thread has checkpointed most of the log. */
export type ToWriter = { readonly group: Parcel } | "hold" | "finish" | "close";

const answer = (outcomes: Parcel): void => parentPort?.postMessage({ outcomes } satisfies Answer);

function write(group: readonly Write[]): void {
  const outcomes = transactions.run(group);
  const bytes = group.some(({ verb }) => bulky.has(verb)) ? Number.POSITIVE_INFINITY : 0;
  answer(packed(outcomes, bytes));
  transactions.checkpoint();
}

function handle(message: Exclude<ToWriter, "close">): void {
  if (typeof message !== "string") {
    write(unpacked<readonly Write[]>(message.group));
    return;
  }
  if (message === "hold") transactions.holdCheckpoints();
  else transactions.finishCheckpoint();
  answer(packed([], 0));
}

parentPort?.on("message", (message: ToWriter) => {
  if (failed) return;
  if (message === "close") {
    db.close();
    parentPort?.close();
    return;
  }
  try {
    handle(message);
  } catch (error) {
    failed = true;
    parentPort?.postMessage({ fatal: error instanceof Error ? error.message : String(error) } satisfies Answer);
  }
});
