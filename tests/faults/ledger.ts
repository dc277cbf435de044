import type { Input, Stage } from "./scene.js";

/** One thing a client wanted to have done, and what it was told. */
export interface Submission {
  readonly key: string;
  readonly stage: Stage;
  readonly input: Input;
  readonly webhook: string | undefined;
  /** The job's id, once a 200 was read. */
  id?: string;
  /** Every id that any answer gave: there must be one. */
  readonly ids: Set<string>;
  /** Whether a client asked to cancel it, and whether that was answered as done. */
  cancel?: "asked" | "done";
  /** The last state that was seen, and how many retries it told of. */
  seen?: { readonly status: string; readonly retries: number };
  /** The first final status body that was seen, and when. */
  final?: { readonly text: string; readonly seenAt: number };
}

/** A worker's word for a job that it no longer holds, and whether it was thanked for it. */
export interface LateWord {
  readonly key: string;
  /** Stands in the output that the word would give the job. */
  readonly word: string;
  readonly isThanked: boolean;
}

/** What all clients did together. */
export class Ledger {
  readonly #byKey = new Map<string, Submission>();
  readonly #open = new Map<Stage, Set<Submission>>();
  readonly lateWords: LateWord[] = [];
  /** Every change of a state that was seen: from, to, and how often. */
  readonly changes = new Map<string, number>();
  /** What no party could make sense of: no answer of the contract's, or one that took back another. */
  readonly complaints: string[] = [];

  get submissions(): Submission[] {
    return [...this.#byKey.values()];
  }

  of(key: string): Submission | undefined {
    return this.#byKey.get(key);
  }

  add(submission: Submission): void {
    this.#byKey.set(submission.key, submission);
  }

  acknowledged(): Submission[] {
    return this.submissions.filter((each) => each.id !== undefined);
  }

  acknowledge(submission: Submission, id: string): void {
    submission.ids.add(id);
    if (submission.ids.size > 1)
      this.complaints.push(`${submission.key} became two jobs: ${[...submission.ids].join(", ")}`);
    if (submission.id !== undefined) return;
    submission.id = id;
    this.#openOf(submission.stage).add(submission);
  }

  end(submission: Submission, text: string): void {
    submission.final ??= { text, seenAt: Date.now() };
    this.#openOf(submission.stage).delete(submission);
  }

  /** Those without a final state, of one endpoint or of all. */
  unfinished(stage?: Stage): Submission[] {
    const sets = stage === undefined ? [...this.#open.values()] : [this.#openOf(stage)];
    return sets.flatMap((set) => [...set]);
  }

  #openOf(stage: Stage): Set<Submission> {
    const open = this.#open.get(stage) ?? new Set();
    this.#open.set(stage, open);
    return open;
  }
}
