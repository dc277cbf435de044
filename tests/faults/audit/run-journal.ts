import { closeSync, openSync, readSync } from "node:fs";

/** One real run of a handler, as its worker recorded it. `endedAt` is absent if the run did not reach its end. */
export interface Run {
  readonly run: string;
  readonly job: string;
  readonly key: string;
  readonly worker: string;
  readonly pid: number;
  readonly startedAt: number;
  endedAt?: number;
}

/** The real runs, from the lines that handlers append to a file. Each read parses only new lines. */
export class RunJournal {
  readonly path: string;
  readonly #runs = new Map<string, Run>();
  readonly #byPid = new Map<number, Run[]>();
  #offset = 0;
  #rest = "";

  constructor(path: string) {
    this.path = path;
  }

  /** All runs so far, in the order of their starts. */
  all(): Run[] {
    this.#read();
    return [...this.#runs.values()];
  }

  /** The runs in one process, in the order of their starts. */
  of(pid: number): readonly Run[] {
    this.#read();
    return this.#byPid.get(pid) ?? [];
  }

  /** Forgets all runs so far: only later ones count. */
  forget(): void {
    this.#read();
    this.#runs.clear();
    this.#byPid.clear();
  }

  #read(): void {
    const lines = `${this.#rest}${this.#news()}`.split("\n");
    this.#rest = lines.pop() ?? "";
    for (const line of lines) this.#note(JSON.parse(line));
  }

  #note({ word, at, ...about }: { word: string; at: number } & Omit<Run, "startedAt">): void {
    const known = this.#runs.get(about.run);
    if (known) known.endedAt = at;
    if (known || word !== "start") return;
    const run: Run = { ...about, startedAt: at };
    this.#runs.set(run.run, run);
    this.#byPid.set(run.pid, [...(this.#byPid.get(run.pid) ?? []), run]);
  }

  #news(): string {
    let file: number;
    try {
      file = openSync(this.path, "r");
    } catch {
      return ""; // nothing has run yet
    }
    try {
      const parts: Buffer[] = [];
      for (;;) {
        const part = Buffer.alloc(256 * 1_024);
        const count = readSync(file, part, 0, part.length, this.#offset);
        if (count === 0) return Buffer.concat(parts).toString("utf8");
        this.#offset += count;
        parts.push(part.subarray(0, count));
      }
    } finally {
      closeSync(file);
    }
  }
}
