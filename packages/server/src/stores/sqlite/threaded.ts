import { createRequire } from "node:module";
import { Worker } from "node:worker_threads";
import { limits } from "../../limits.js";
import { packed, unpacked } from "./parcel.js";
import type { Outcome, Write } from "./transactions.js";
import type { Answer } from "./writer-thread.js";

interface Sent {
  readonly resolve: (outcomes: Outcome[]) => void;
  readonly reject: (error: Error) => void;
}

const isPlain = (value: unknown): value is object =>
  typeof value === "object" && value !== null && !ArrayBuffer.isView(value);

const valuesIn = (value: unknown): unknown[] => (isPlain(value) ? Object.values(value).flatMap(valuesIn) : [value]);

/** The memory of the large texts of a group that are bytes: it goes to the thread as it is. */
function movable(group: readonly Write[]): ArrayBuffer[] {
  const isBytes = (value: unknown): value is Uint8Array<ArrayBuffer> => value instanceof Uint8Array;
  const large = group
    .flatMap(({ args }) => args)
    .flatMap(valuesIn)
    .filter(isBytes)
    .filter(({ length }) => length >= limits.jsonThreadBytes);
  return [...new Set(large.map(({ buffer }) => buffer))];
}

/** The transactions of a database file, in a thread of their own: a commit that waits for the disk holds up nobody else. */
export function threaded(path: string): {
  send: (group: readonly Write[], bytes: number) => Promise<Outcome[]>;
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
    else sent.shift()?.resolve(unpacked(answer.outcomes));
  });
  thread.on("error", fail);
  const ended = new Promise<void>((end) => {
    thread.once("exit", () => {
      fail(new Error("the writing thread has ended"));
      end();
    });
  });
  return {
    send: (group, bytes) =>
      new Promise((resolve, reject) => {
        if (failed) return reject(failed);
        sent.push({ resolve, reject });
        thread.postMessage({ group: packed(group, bytes) }, bytes < limits.jsonThreadBytes ? [] : movable(group));
      }),
    close: async () => {
      thread.postMessage("close");
      await ended;
    },
  };
}
