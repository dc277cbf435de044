import { randomUUID } from "node:crypto";
import { appendFileSync, existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import type { StatusBody } from "@millrace/api";
import { exits, Failure } from "../exit.js";

/** A job's end, as a line of the results. */
export type Result = Pick<StatusBody, "id" | "status"> &
  Partial<Pick<StatusBody, "output" | "error">> & {
    /** The line of its input, from 1 on. */
    readonly line: number;
  };

/**
 * The results of a batch in a file, a line for each job that has ended. Beside it, until all have ended, is the batch's
 * id: from it each line's idempotency key is made, so that a batch that is begun again finds the jobs that it has
 * submitted already.
 */
export class Results {
  readonly #file: string;
  readonly #state: string;
  readonly #done = new Set<number>();
  /** Of the whole batch. */
  readonly id: string;
  failed = 0;

  constructor(file: string) {
    [this.#file, this.#state] = [file, `${file}.batch`];
    const isBegun = existsSync(this.#state);
    if (existsSync(file) && !isBegun)
      throw new Failure(exits.usage, `${file} has the results of a batch that is done: name another file.`);
    this.id = isBegun ? readFileSync(this.#state, "utf8").trim() : randomUUID();
    if (!isBegun) writeFileSync(this.#state, `${this.id}\n`);
    if (existsSync(file)) this.#readOn();
    else writeFileSync(file, "");
  }

  get count(): number {
    return this.#done.size;
  }

  has = (line: number): boolean => this.#done.has(line);

  add(result: Result): void {
    appendFileSync(this.#file, `${JSON.stringify(result)}\n`);
    this.#note(result);
  }

  /** All have ended. */
  close(): void {
    rmSync(this.#state);
  }

  /** Takes over what an earlier run has written; a line that was cut off by its end is written anew. */
  #readOn(): void {
    const text = readFileSync(this.#file, "utf8");
    const whole = text.slice(0, text.lastIndexOf("\n") + 1);
    if (whole.length < text.length) writeFileSync(this.#file, whole);
    for (const line of whole.split("\n")) if (line !== "") this.#note(JSON.parse(line) as Result);
  }

  #note({ line, status, error }: Result): void {
    this.#done.add(line);
    if (status !== "COMPLETED" || error !== undefined) this.failed++;
  }
}
