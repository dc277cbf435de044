import { limits } from "../limits/index.js";

const nothing = new Uint8Array(0);

/** Parts of a text, put where they belong as they come: to join a large one at its end would be one long step. */
export class Joined {
  readonly #announced: number;
  #memory: Uint8Array = nothing;
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
    if (at === 0 && this.#length === this.#announced) {
      this.#memory = part;
      return;
    }
    if (this.#length > this.#memory.length) this.#grow();
    this.#memory.set(part, at);
  }

  whole(): Buffer {
    const { buffer, byteOffset } = this.#memory;
    return Buffer.from(buffer as ArrayBuffer, byteOffset, this.#length);
  }

  /** An announcement alone is given no memory; once a share of it has come, it is given all. Parts are not kept: each costs far more than a byte. */
  #grow(): void {
    const isBelieved = this.#length >= limits.bodyBelievedShare * this.#announced;
    const wanted = Math.max(2 * this.#length, limits.bodyBytesFree);
    // not from Node's pool: the whole is moved between threads, and the pool cannot be
    const memory = Buffer.allocUnsafeSlow(isBelieved ? this.#announced : Math.min(wanted, this.#announced));
    memory.set(this.#memory);
    this.#memory = memory;
  }
}
