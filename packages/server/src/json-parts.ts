import { limits } from "./limits.js";

/** Parts of a text, put where they belong as they come: to join a large one at its end would be one long step. */
export class Joined {
  readonly #announced: number;
  #parts: Uint8Array[] = [];
  #memory: Buffer | undefined;
  #length = 0;

  /** `announced`: how long the whole says it is; it is never longer. */
  constructor(announced: number) {
    this.#announced = announced;
  }

  get length(): number {
    return this.#length;
  }

  add(part: Uint8Array): void {
    const at = this.#length;
    this.#length += part.length;
    if (this.#memory) this.#memory.set(part, at);
    else this.#parts.push(part);
    // an announcement alone is given no memory; once a share of it has come, it is given all
    if (!this.#memory && this.#length >= limits.bodyBelievedShare * this.#announced) this.#believe();
  }

  whole(): Buffer {
    return this.#memory?.subarray(0, this.#length) ?? Buffer.concat(this.#parts, this.#length);
  }

  #believe(): void {
    this.#memory = Buffer.allocUnsafe(this.#announced);
    let at = 0;
    for (const part of this.#parts.splice(0)) {
      this.#memory.set(part, at);
      at += part.length;
    }
  }
}
