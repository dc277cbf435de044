import { Worker } from "node:worker_threads";
import { type ProgramName, programFile } from "../../../host/programs.js";
import { limits } from "../../../limits/index.js";
import type { Brought } from "../disk/checkpoint-thread.js";
import { packed, unpacked } from "./parcel.js";
import type { Outcome, Write } from "./transactions.js";
import type { Answer, ToWriter } from "./writer-thread.js";

const isPlain = (value: unknown): value is object =>
  typeof value === "object" && value !== null && !ArrayBuffer.isView(value);

const valuesIn = (value: unknown): unknown[] => (isPlain(value) ? Object.values(value).flatMap(valuesIn) : [value]);

/** The buffers of a group's large texts: they are transferred to the thread without a copy. */
function movable(group: readonly Write[]): ArrayBuffer[] {
  const isBytes = (value: unknown): value is Uint8Array<ArrayBuffer> => value instanceof Uint8Array;
  const large = group
    .flatMap(({ args }) => args)
    .flatMap(valuesIn)
    .filter(isBytes)
    .filter(({ length }) => length >= limits.jsonThreadBytes);
  return [...new Set(large.map(({ buffer }) => buffer))];
}

type Answered<Value> = { readonly value: Value } | { readonly fatal: string };

/** A thread that answers each message in order. After a failure no more messages are sent to it. */
class Answering<Message, Answer, Value> {
  readonly #thread: Worker;
  readonly #asked: { resolve: (value: Value) => void; reject: (error: Error) => void }[] = [];
  readonly #ended: Promise<void>;
  #failed: Error | undefined;

  constructor(program: ProgramName, path: string, toAnswered: (answer: Answer) => Answered<Value>) {
    this.#thread = new Worker(programFile(program), { workerData: { path } });
    this.#thread.on("message", (answer: Answer) => {
      const answered = toAnswered(answer);
      if ("fatal" in answered) this.#fail(new Error(answered.fatal));
      else this.#asked.shift()?.resolve(answered.value);
    });
    this.#thread.on("error", (error) => this.#fail(error as Error));
    this.#ended = new Promise((end) => {
      this.#thread.once("exit", () => {
        this.#fail(new Error("a thread of the database has ended"));
        end();
      });
    });
  }

  ask(message: Message, moved: ArrayBuffer[] = []): Promise<Value> {
    return new Promise((resolve, reject) => {
      if (this.#failed) return reject(this.#failed);
      this.#asked.push({ resolve, reject });
      this.#thread.postMessage(message, moved);
    });
  }

  async close(): Promise<void> {
    this.#thread.postMessage("close");
    await this.#ended;
  }

  #fail(error: Error): void {
    this.#failed ??= error;
    for (const { reject } of this.#asked.splice(0)) reject(this.#failed);
  }
}

/**
 * Runs the transactions of a database file in a thread of their own, so that a commit that waits for the disk delays
 * nothing else. Another thread checkpoints a large log; it starts when it is first needed.
 */
export function threaded(path: string): {
  send: (group: readonly Write[], bytes: number) => Promise<Outcome[]>;
  checkpoint: () => Promise<boolean>;
  close: () => Promise<void>;
} {
  const writer = new Answering<ToWriter, Answer, Outcome[]>("#sqlite-writer", path, (answer) =>
    "fatal" in answer ? answer : { value: unpacked(answer.outcomes) },
  );
  let aside: Answering<"bring", Brought, number> | undefined;
  const bring = (): Promise<number> => {
    aside ??= new Answering("#sqlite-checkpoint", path, (answer) =>
      "fatal" in answer ? answer : { value: answer.pagesLeft },
    );
    return aside.ask("bring");
  };
  return {
    send: (group, bytes) =>
      writer.ask({ group: packed(group, bytes) }, bytes < limits.jsonThreadBytes ? [] : movable(group)),
    async checkpoint() {
      await writer.ask("hold");
      if ((await bring()) > limits.checkpointTailPages) return false;
      await writer.ask("finish");
      return true;
    },
    async close() {
      await aside?.close();
      await writer.close();
    },
  };
}
