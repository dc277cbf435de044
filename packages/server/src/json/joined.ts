import { limits } from "../limits/index.js";

const nothing = new Uint8Array(0);

/** Joins the pieces of a text as they arrive: joining a large one at its end would block for too long. */
export class Joined {
  readonly #announced: number;
  #memory: Uint8Array = nothing;
  /** Whether the memory is not the first piece's, which others may share. */
  #isOwn = false;
  #length = 0;

  /** `announced`: the announced length, which is never exceeded. */
  constructor(announced: number) {
    this.#announced = announced;
  }

  get length(): number {
    return this.#length;
  }

  add(piece: Uint8Array): void {
    const at = this.#length;
    this.#length += piece.length;
    if (at === 0 && this.#length === this.#announced) {
      this.#memory = piece;
      return;
    }
    if (this.#length > this.#memory.length) this.#grow();
    this.#memory.set(piece, at);
  }

  /** Frees the memory at once: the garbage of many large texts would grow faster than it is collected. */
  drop(): void {
    free(this.#memory);
    this.#memory = nothing;
  }

  whole(): Buffer {
    const { buffer, byteOffset } = this.#memory;
    return Buffer.from(buffer as ArrayBuffer, byteOffset, this.#length);
  }

  /**
   * Grows with what arrives; the whole announced length is allocated only after a share of it has come. Pieces are not
   * kept, because each costs far more than its bytes.
   */
  #grow(): void {
    const isBelieved = this.#length >= limits.bodyBelievedShare * this.#announced;
    const wanted = Math.max(2 * this.#length, limits.bodyBytesFree);
    // not from Node's pool: the memory is transferred between threads, and pooled memory cannot be
    const memory = Buffer.allocUnsafeSlow(isBelieved ? this.#announced : Math.min(wanted, this.#announced));
    memory.set(this.#memory);
    if (this.#isOwn) free(this.#memory);
    this.#memory = memory;
    this.#isOwn = true;
  }
}

/** Frees memory that nothing else refers to. */
export function free(memory: Uint8Array): void {
  if (memory.length > 0) (memory.buffer as ArrayBuffer).transfer(0);
}
