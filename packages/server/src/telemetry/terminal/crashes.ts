import { limits } from "../../limits/index.js";
import { bounded } from "./bounded.js";

/** A line may be long; its beginning tells it from others. */
const keyChars = 200;

/** What starting workers have printed since one of their endpoint was last ready. */
interface Said {
  /** By line: the worker that printed it first. */
  readonly lines: Map<string, string>;
  hasFailed: boolean;
}

/** What workers print that fail at their start, one after the other: the same again is no news. */
export class Crashes {
  readonly #said = new Map<string, Said>();
  readonly #starting = new Set<string>();

  began(workerId: string): void {
    if (this.#starting.size < limits.terminalNamesMax) this.#starting.add(workerId);
  }

  /** Whether another worker has printed this line before one failed; notes it for those to come. */
  hasSeen(endpointId: string, workerId: string, text: string): boolean {
    if (!this.#starting.has(workerId)) return false;
    const { lines, hasFailed } = this.#of(endpointId);
    const key = text.slice(0, keyChars);
    const first = lines.get(key);
    if (first === undefined && lines.size < limits.terminalTraceLines) lines.set(key, workerId);
    return hasFailed && first !== undefined && first !== workerId;
  }

  failed(endpointId: string): void {
    this.#of(endpointId).hasFailed = true;
  }

  worked(endpointId: string, workerId: string): void {
    this.#said.delete(endpointId);
    this.#starting.delete(workerId);
  }

  forget(workerId: string): void {
    this.#starting.delete(workerId);
  }

  #of(endpointId: string): Said {
    let said = this.#said.get(endpointId);
    if (!said) {
      said = { lines: new Map(), hasFailed: false };
      bounded(this.#said).set(endpointId, said);
    }
    return said;
  }
}
