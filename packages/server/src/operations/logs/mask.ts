import { HiddenTexts, type LogLine, type LogMark, markOf } from "../../domain/workers/log-line.js";
import type { Worker } from "../../domain/workers/worker.js";
import { limits } from "../../limits/index.js";
import { turns } from "../../turns.js";
import { NotedSecrets } from "../access/noted-secrets.js";
import type { Needs } from "../needs.js";

/** A worker, live or long ended. While it lives its row is replaced as it changes. */
export interface Logged {
  readonly row: Worker;
}

/** A line as callers see it. */
export interface ShownLine extends LogLine, LogMark {}

type Masking = Needs<"secrets" | "vault">;

const lane = ["logs"] as const;
const masks = new WeakMap<Logged, Mask>();

/** The mask of a worker's log, which all its readers share. */
export function maskOf(worker: Logged): Mask {
  const mask = masks.get(worker) ?? new Mask(worker);
  masks.set(worker, mask);
  return mask;
}

/**
 * Hides the `accessSecret` of the jobs that a worker has had. Its provider hides them, too; but a job that was taken on
 * another server may be unknown to the one that keeps the log.
 */
class Mask {
  readonly #worker: Logged;
  readonly #noted: NotedSecrets;
  #hasEnded = false;
  readonly #hidden = new HiddenTexts([], limits.heldJobsMax);
  #looking: Promise<void> | undefined;
  /** Begins when the present look is over. */
  #next: Promise<void> | undefined;

  constructor(worker: Logged) {
    this.#worker = worker;
    this.#noted = new NotedSecrets(worker.row.no);
  }

  /** Lines as callers see them. */
  async shown(needs: Masking, lines: readonly LogLine[]): Promise<ShownLine[]> {
    // a job taken while the lines were read has its secret in them
    if (!this.#hasEnded) await this.#look(needs);
    const shown: ShownLine[] = [];
    let unitsLeft = 0;
    for (const line of lines) {
      if (unitsLeft <= 0) {
        if (turns.isOver) await turns.take(lane);
        unitsLeft = limits.logMaskUnitsMax;
      }
      const isJson = line.text.startsWith("{");
      unitsLeft -= (line.text.length + 1) * (this.#hidden.size + (isJson ? limits.logParseFactor : 1));
      const text = this.#hidden.mask(line.text);
      shown.push({ ...line, text, ...markOf(text) });
    }
    return shown;
  }

  /** Waits for a look that began after this call. */
  #look(needs: Masking): Promise<void> {
    if (this.#looking) {
      this.#next ??= this.#looking.then(
        () => this.#lookNext(needs),
        () => this.#lookNext(needs),
      );
      return this.#next;
    }
    this.#looking = this.#learn(needs).finally(() => {
      this.#looking = undefined;
    });
    return this.#looking;
  }

  #lookNext(needs: Masking): Promise<void> {
    this.#next = undefined;
    return this.#look(needs);
  }

  async #learn(needs: Masking): Promise<void> {
    const { endedAt } = this.#worker.row;
    for (const text of await this.#noted.next(needs)) this.#hidden.add(text);
    this.#hasEnded = endedAt !== undefined;
  }
}
