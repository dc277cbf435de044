import { randomUUID } from "node:crypto";
import { appendFileSync, existsSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import type { StatusBody } from "@millrace/api";
import { exits, Failure } from "../exit.js";
import { reasonOf } from "../files.js";

/** A job's end, as a line of the results: REFUSED if its input was, EXPIRED if it was deleted with its result before. */
export interface Result extends Partial<Pick<StatusBody, "id" | "output" | "error">> {
  /** The line of its input, from 1 on. */
  readonly line: number;
  readonly status: StatusBody["status"] | "REFUSED" | "EXPIRED";
}

/** What a batch is made of: another one may not go on with its results. */
interface Origin {
  readonly endpoint: string;
  /** A hash of its inputs. */
  readonly inputs: string;
}

interface State extends Origin {
  readonly id: string;
  /** The process that works on it. */
  readonly pid: number;
}

/**
 * The results of a batch in a file, a line for each job that has ended. Beside it, until all have ended, is the batch's
 * id: from it each line's idempotency key is made, so that a batch that is begun again finds the jobs that it has
 * submitted already.
 */
export class Results {
  readonly #file: string;
  readonly #state: string;
  readonly #begun: State;
  readonly #done = new Set<number>();
  failed = 0;
  expired = 0;

  constructor(file: string, origin: Origin) {
    [this.#file, this.#state] = [file, `${file}.batch`];
    if (statSync(file, { throwIfNoEntry: false })?.isDirectory())
      throw new Failure(exits.usage, `${file} is a folder.`, "--out results.jsonl");
    const before = this.#before();
    if (existsSync(file) && !before)
      throw new Failure(exits.usage, `${file} has the results of a batch that is done: name another file.`);
    if (before) assertSame(file, before, origin);
    this.#begun = { ...origin, id: before?.id ?? randomUUID(), pid: process.pid };
    try {
      this.#keep(this.#begun.pid);
      if (existsSync(file)) this.#readOn();
      else writeFileSync(file, "");
    } catch (error) {
      if (error instanceof Failure) throw error;
      throw new Failure(exits.usage, `${file} cannot be written: ${reasonOf(error)}.`, "--out results.jsonl");
    }
  }

  /** Of the whole batch. */
  get id(): string {
    return this.#begun.id;
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

  /** Another run may go on with it. */
  leave(): void {
    if (existsSync(this.#state)) this.#keep(0);
  }

  #keep(pid: number): void {
    writeFileSync(this.#state, `${JSON.stringify({ ...this.#begun, pid })}\n`);
  }

  /** The batch that has begun to write these results; undefined if there is none. */
  #before(): State | undefined {
    if (!existsSync(this.#state)) return undefined;
    try {
      return JSON.parse(readFileSync(this.#state, "utf8")) as State;
    } catch (error) {
      const why = (error as Error).message;
      throw new Failure(exits.usage, `${this.#state} cannot be read (${why}): name another file for the results.`);
    }
  }

  /** Takes over what an earlier run has written; a line that was cut off by its end is written anew. */
  #readOn(): void {
    const text = readFileSync(this.#file, "utf8");
    const whole = text.slice(0, text.lastIndexOf("\n") + 1);
    if (whole.length < text.length) writeFileSync(this.#file, whole);
    for (const [n, line] of whole.split("\n").entries()) if (line !== "") this.#note(this.#resultIn(line, n + 1));
  }

  #resultIn(line: string, n: number): Result {
    try {
      return JSON.parse(line) as Result;
    } catch {
      throw new Failure(exits.usage, `Line ${n} of ${this.#file} is not a result of a batch: name another file.`);
    }
  }

  #note({ line, status, error }: Result): void {
    this.#done.add(line);
    if (status === "EXPIRED") this.expired++;
    else if (status !== "COMPLETED" || error !== undefined) this.failed++;
  }
}

/** Refuses to go on with the results of another batch, or of one that another process works on. */
function assertSame(file: string, before: State, origin: Origin): void {
  if (before.endpoint !== origin.endpoint)
    throw new Failure(exits.usage, `${file} has results of endpoint ${before.endpoint}: name another file.`);
  if (before.inputs !== origin.inputs)
    throw new Failure(
      exits.usage,
      `The inputs have changed since ${file} was begun: name another file, or put the inputs back.`,
    );
  if (isAlive(before.pid))
    throw new Failure(exits.usage, `Process ${before.pid} writes ${file} already: wait for its end, or stop it.`);
}

function isAlive(pid: number): boolean {
  if (pid === 0 || pid === process.pid) return false;
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
