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

parentPort?.on("message", (group: readonly Write[] | "close") => {
  if (group === "close") {
    db.close();
    parentPort?.close();
    return;
  }
  let answer: Answer;
  try {
    answer = { outcomes: transactions.run(group) };
  } catch (error) {
    answer = { fatal: error instanceof Error ? error.message : String(error) };
  }
  parentPort?.postMessage(answer);
});
