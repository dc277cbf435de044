import { limits } from "../limits/index.js";

/** A webhook body that is to be read. */
export interface Body {
  readonly no: number;
  readonly ownerNo: number;
  readonly bytes: number;
}

/**
 * Memory for the large bodies under delivery. An owner may have as much as is still free, so that something is left for
 * one more owner. A body waits before it is read. Meanwhile no later body of its owner overtakes it, and owners without
 * memory come before owners with some.
 */
export class WebhookBytes {
  readonly #bytesMax: number;
  readonly #smallBytesMax: number;
  #lent = 0;
  readonly #owners = new Map<number, number>();
  /** Each owner's next body, the longest wait first. */
  readonly #next = new Map<number, { readonly no: number; isSeen: boolean }>();

  constructor({
    bytesMax = limits.webhookBytesMax,
    smallBytesMax = limits.bodyBytesSmall,
  }: { bytesMax?: number; smallBytesMax?: number } = {}) {
    this.#bytesMax = bytesMax;
    this.#smallBytesMax = smallBytesMax;
  }

  /** Lends a body its memory until the returned function is called; undefined if it has to wait. */
  lend({ no, ownerNo, bytes }: Body): (() => void) | undefined {
    if (bytes <= this.#smallBytesMax) return () => {};
    const next = this.#next.get(ownerNo);
    if (next && next.no !== no) return undefined;
    if (!this.#isTurnOf(ownerNo) || !this.#fits(ownerNo, bytes)) {
      if (next) next.isSeen = true;
      else this.#next.set(ownerNo, { no, isSeen: true });
      return undefined;
    }
    this.#next.delete(ownerNo);
    this.#add(ownerNo, bytes);
    return () => this.#add(ownerNo, -bytes);
  }

  /** Another reason keeps this body from being delivered: others do not wait for it. */
  pass({ no, ownerNo }: Body): void {
    if (this.#next.get(ownerNo)?.no === no) this.#next.delete(ownerNo);
  }

  /** Everything due was looked at once: bodies that are no longer due stop holding up others. */
  endRound(): void {
    for (const [ownerNo, next] of this.#next) {
      if (!next.isSeen) this.#next.delete(ownerNo);
      next.isSeen = false;
    }
  }

  #isTurnOf(ownerNo: number): boolean {
    const first = [...this.#next.keys()].find((waiting) => !this.#owners.has(waiting));
    return first === undefined || first === ownerNo;
  }

  #fits(ownerNo: number, bytes: number): boolean {
    const [own, free] = [this.#owners.get(ownerNo) ?? 0, this.#bytesMax - this.#lent];
    return this.#lent === 0 || (bytes <= free && (own === 0 || own + bytes <= free));
  }

  #add(ownerNo: number, bytes: number): void {
    this.#lent += bytes;
    const own = (this.#owners.get(ownerNo) ?? 0) + bytes;
    if (own === 0) this.#owners.delete(ownerNo);
    else this.#owners.set(ownerNo, own);
  }
}
