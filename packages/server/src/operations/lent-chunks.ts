import type { Signal } from "../clock.js";
import { limits } from "../limits.js";
import type { Share } from "../lines/shares.js";
import type { Chunk } from "../store.js";
import { noRoom } from "./lend-status.js";
import type { Needs } from "./needs.js";

interface Found {
  readonly chunks: Chunk[];
  readonly more: boolean;
}

/** Reads a stream's chunks for one client into lent memory: what one reading took is given back at the next. */
export class LentChunks {
  readonly #needs: Needs<"chunks" | "shares">;
  readonly #ownerNo: number;
  readonly #gone: Signal;
  #share: Share | undefined;

  constructor(needs: Needs<"chunks" | "shares">, ownerNo: number, gone: Signal) {
    this.#needs = needs;
    this.#ownerNo = ownerNo;
    this.#gone = gone;
  }

  /** Chunks from an index on, without consuming them. */
  async read(jobNo: number, fromIndex: number, bytesMax: number): Promise<Chunk[]> {
    const read = async () => ({ chunks: await this.#needs.chunks.read(jobNo, fromIndex, bytesMax), more: false });
    return (await this.#lent(bytesMax, read)).chunks;
  }

  /** Takes the chunks not yet handed out. */
  handOut(jobNo: number, bytesMax: number): Promise<Found> {
    return this.#lent(bytesMax, () => this.#needs.chunks.handOut(jobNo, bytesMax));
  }

  release(): void {
    this.#share?.release();
    this.#share = undefined;
  }

  async #lent(bytesMax: number, read: () => Promise<Found>): Promise<Found> {
    this.release();
    const { shares } = this.#needs;
    // a reading brings one chunk at least
    const share = await shares.ask(this.#ownerNo, Math.max(bytesMax, limits.chunkBytesMax), this.#gone);
    if (!share && this.#gone.aborted) return { chunks: [], more: false };
    if (!share) throw noRoom();
    this.#share = share;
    const found = await read();
    share.keep(found.chunks.reduce((sum, { output }) => sum + output.length, 0));
    return found;
  }
}
