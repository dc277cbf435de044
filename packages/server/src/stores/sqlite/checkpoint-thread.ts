import { parentPort, workerData } from "node:worker_threads";
import { openForWriting } from "./driver.js";
import { bringLog } from "./wal.js";

/** What the thread answers to each request: how many pages of the log are left. */
export type Brought = { readonly pagesLeft: number } | { readonly fatal: string };

const { path } = workerData as { path: string };
const db = openForWriting(path);

parentPort?.on("message", (message: "bring" | "close") => {
  if (message === "close") {
    db.close();
    parentPort?.close();
    return;
  }
  try {
    parentPort?.postMessage({ pagesLeft: bringLog(db) } satisfies Brought);
  } catch (error) {
    parentPort?.postMessage({ fatal: error instanceof Error ? error.message : String(error) } satisfies Brought);
  }
});
