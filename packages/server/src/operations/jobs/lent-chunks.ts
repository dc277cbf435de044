import type { Signal } from "../../clock.js";
import { opensValue, partOf } from "../../json/json.js";
import { limits } from "../../limits/index.js";
import type { Share } from "../../lines/shares.js";
import type { Chunk } from "../../store/index.js";
import type { Needs } from "../needs.js";
import { noRoom } from "./lend-status.js";

interface Found {
  readonly chunks: Chunk[];
  readonly more: boolean;
}

/** Of a value's pieces: as the text of strings, JSON takes more bytes. */
const piecesBytesMax = 2 * limits.outputBytesMax;

/** Reads a stream's chunks for one client into borrowed memory. Each read gives back the memory of the last. */
export class LentChunks {
  readonly #needs: Needs<"chunks" | "streamShares">;
  readonly #ownerNo: number;
  readonly #gone: Signal;
  #share: Share | undefined;

  constructor(needs: Needs<"chunks" | "streamShares">, ownerNo: number, gone: Signal) {
    this.#needs = needs;
    this.#ownerNo = ownerNo;
    this.#gone = gone;
  }

  /** Reads chunks from an index on, without consuming them. */
  async read(jobNo: number, fromIndex: number, bytesMax: number): Promise<Chunk[]> {
    if (!(await this.#ask(bytesMax))) return [];
    const chunks = await this.#needs.chunks.read({ jobNo, fromIndex, bytesMax });
    this.keep(chunks);
    return chunks;
  }

  /** The same, but all pieces of a large value come together. */
  async readValues(jobNo: number, fromIndex: number, bytesMax: number): Promise<Chunk[]> {
    const chunks = await this.read(jobNo, fromIndex, bytesMax);
    const at = chunks.findLastIndex((chunk) => partOf(chunk)?.isFirst && opensValue(chunk.output));
    const begun = chunks[at];
    if (!begun || chunks.slice(at).some((chunk) => partOf(chunk)?.isLast)) return chunks;
    if (at > 0) return chunks.slice(0, at);
    const pieces = partOf(begun)?.parts ?? 1;
    return this.read(jobNo, fromIndex, Math.min(pieces * limits.chunkBytesMax, piecesBytesMax));
  }

  /** Takes the chunks not yet handed out. Memory for the largest possible result is held until `keep`. */
  async handOut(jobNo: number, bytesMax: number): Promise<Found> {
    if (!(await this.#ask(bytesMax))) return { chunks: [], more: false };
    const found = await this.#needs.chunks.handOut({ jobNo, bytesMax });
    if (found.chunks.length === 0) this.release();
    return found;
  }

  /** Gives back all but what these chunks take. */
  keep(chunks: readonly Chunk[]): void {
    this.#share?.keep(
      chunks.reduce((sum, { output, metrics }) => sum + 2 * (output.length + (metrics?.length ?? 0)), 0),
    );
  }

  isWanted(): boolean {
    return this.#needs.streamShares.isWanted;
  }

  release(): void {
    this.#share?.release();
    this.#share = undefined;
  }

  /** False if the client has gone. */
  async #ask(bytesMax: number): Promise<boolean> {
    this.release();
    // a read returns at least one chunk; the factor is for its strings and the bytes made from them
    const bytes = 2 * Math.max(bytesMax, limits.chunkBytesMax + limits.chunkMetricsBytesMax);
    this.#share = await this.#needs.streamShares.ask(this.#ownerNo, bytes, this.#gone);
    if (!this.#share && !this.#gone.aborted) throw noRoom();
    return this.#share !== undefined;
  }
}
