import { parentPort, workerData } from "node:worker_threads";
import { diskReserve } from "./disk-reserve.js";
import { openForWriting } from "./driver.js";
import type { Outcome, Write } from "./transactions.js";
import { writes } from "./writes.js";

/** What the thread answers to each group, in the order they came. */
export type Answer = { readonly outcomes: Outcome[] } | { readonly fatal: string };

const { path } = workerData as { path: string };
const db = openForWriting(path);
const transactions = writes(db, diskReserve(path));

/** Nothing is written after the disk has failed: what it holds is unknown. */
let failed = false;

parentPort?.on("message", (group: readonly Write[] | "close") => {
  if (failed) return;
  if (group === "close") {
    db.close();
    parentPort?.close();
    return;
  }
  try {
    parentPort?.postMessage({ outcomes: transactions.run(group) } satisfies Answer);
    transactions.checkpoint();
  } catch (error) {
    failed = true;
    parentPort?.postMessage({ fatal: error instanceof Error ? error.message : String(error) } satisfies Answer);
  }
});
