import { parentPort, workerData } from "node:worker_threads";
import { diskReserve } from "./disk-reserve.js";
import { openForWriting } from "./driver.js";
import { type Parcel, packed, unpacked } from "./parcel.js";
import type { Write } from "./transactions.js";
import { writes } from "./writes.js";

/** What the thread answers to each group, in the order they came. */
export type Answer = { readonly outcomes: Parcel } | { readonly fatal: string };

/** Verbs whose answers may hold large texts. */
const bulky = new Set(["take", "handOut", "statements"]);

const { path } = workerData as { path: string };
const db = openForWriting(path);
const transactions = writes(db, diskReserve(path));

/** Nothing is written after the disk has failed: what it holds is unknown. */
let failed = false;

parentPort?.on("message", (message: { readonly group: Parcel } | "close") => {
  if (failed) return;
  if (message === "close") {
    db.close();
    parentPort?.close();
    return;
  }
  try {
    const group = unpacked<readonly Write[]>(message.group);
    const outcomes = transactions.run(group);
    const bytes = group.some(({ verb }) => bulky.has(verb)) ? Number.POSITIVE_INFINITY : 0;
    parentPort?.postMessage({ outcomes: packed(outcomes, bytes) } satisfies Answer);
    transactions.checkpoint();
  } catch (error) {
    failed = true;
    parentPort?.postMessage({ fatal: error instanceof Error ? error.message : String(error) } satisfies Answer);
  }
});
