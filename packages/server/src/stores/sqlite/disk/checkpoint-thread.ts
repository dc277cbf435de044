import { parentPort, workerData } from "node:worker_threads";
import { openForWriting } from "../driver.js";
import { bringLog } from "./wal.js";

/** The thread's answer to each request: the number of log pages left. */
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
