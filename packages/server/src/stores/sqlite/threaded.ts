import { createRequire } from "node:module";
import { Worker } from "node:worker_threads";
import type { Outcome, Write } from "./transactions.js";
import type { Answer } from "./writer-thread.js";

interface Sent {
  readonly resolve: (outcomes: Outcome[]) => void;
  readonly reject: (error: Error) => void;
}

/** The transactions of a database file, in a thread of their own: a commit that waits for the disk holds up nobody else. */
export function threaded(path: string): {
  send: (group: readonly Write[]) => Promise<Outcome[]>;
  close: () => Promise<void>;
} {
  const thread = new Worker(createRequire(import.meta.url).resolve("#sqlite-writer"), { workerData: { path } });
  const sent: Sent[] = [];
  let failed: Error | undefined;
  const fail = (error: Error) => {
    failed ??= error;
    for (const { reject } of sent.splice(0)) reject(failed);
  };
  thread.on("message", (answer: Answer) => {
    if ("fatal" in answer) fail(new Error(answer.fatal));
    else sent.shift()?.resolve(answer.outcomes);
  });
  thread.on("error", fail);
  const ended = new Promise<void>((end) => {
    thread.once("exit", () => {
      fail(new Error("the writing thread has ended"));
      end();
    });
  });
  return {
    send: (group) =>
      new Promise((resolve, reject) => {
        if (failed) return reject(failed);
        sent.push({ resolve, reject });
        thread.postMessage(group);
      }),
    close: async () => {
      thread.postMessage("close");
      await ended;
    },
  };
}
