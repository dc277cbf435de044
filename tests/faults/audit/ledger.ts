import type { Input, Stage } from "../scene.js";

/** One request of a client, and the answers to it. */
export interface Submission {
  readonly key: string;
  readonly stage: Stage;
  readonly input: Input;
  readonly webhook: string | undefined;
  /** The job's id, once a 200 was read. */
  id?: string;
  /** Every id that any answer contained: there must be exactly one. */
  readonly ids: Set<string>;
  /** Whether a client asked to cancel it, and whether the answer confirmed that. */
  cancel?: "asked" | "done";
  /** The last state seen, with its number of retries. */
  seen?: { readonly status: string; readonly retries: number };
  /** The first final status body that was seen, and when. */
  final?: { readonly text: string; readonly seenAt: number };
}

/** A worker's report on a job that it no longer holds, and whether it was answered 200. */
export interface LateWord {
  readonly key: string;
  /** A part of the output that the report would give the job. */
  readonly word: string;
  readonly isThanked: boolean;
}

/** Everything that the clients did. */
export class Ledger {
  readonly #byKey = new Map<string, Submission>();
  readonly #open = new Map<Stage, Set<Submission>>();
  readonly lateWords: LateWord[] = [];
  /** How often each change of state, from one to another, was seen. */
  readonly changes = new Map<string, number>();
  /** Answers that break the contract, or that contradict an earlier answer. */
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

  /** The submissions without a final state, of one endpoint or of all. */
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
