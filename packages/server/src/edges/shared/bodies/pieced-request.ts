import { IncomingMessage } from "node:http";
import { limits } from "../../../limits/index.js";

declare module "node:http" {
  interface IncomingMessage {
    /** Names and values alternate; `count` counts both. */
    _addHeaderLines(lines: readonly string[], count: number): void;
  }
}

let isJoining = false;
let piecesSeen = 0;
/** The request whose last pieces are not handed over yet. Earlier ones in the same bytes have ended. */
let unfinished: PiecedRequest | undefined;

/** How many pieces of bodies were parsed since {@link joinPieces}. */
export const piecesParsed = (): number => piecesSeen;

/**
 * From now on pieces of a body are collected, to be handed over as one: a piece costs its reader far more than a byte.
 */
export function joinPieces(): void {
  isJoining = true;
  piecesSeen = 0;
}

/** Hands over the collected pieces of the unfinished body. Returns false if its reader has enough for now. */
export function handOverPieces(): boolean {
  isJoining = false;
  const request = unfinished;
  unfinished = undefined;
  return request === undefined || request.handOver();
}

/** A request whose body arrives in as few pieces as its socket's reads, however many chunks its client cuts it into. */
export class PiecedRequest extends IncomingMessage {
  #pieces: Buffer[] = [];

  /**
   * Node hands over all lines at once, here when the head is complete. A request with lines beyond the limit is
   * refused, so those lines stay out of the headers object: building it takes far longer than reading them.
   */
  override _addHeaderLines(lines: readonly string[], count: number): void {
    super._addHeaderLines(lines, Math.min(count, 2 * limits.headersMax));
  }

  override push(piece: Buffer | null): boolean {
    if (piece === null) {
      this.handOver();
      return super.push(null);
    }
    if (!isJoining) return super.push(piece);
    piecesSeen++;
    this.#pieces.push(piece);
    unfinished = this;
    return true;
  }

  handOver(): boolean {
    if (unfinished === this) unfinished = undefined;
    const pieces = this.#pieces;
    if (pieces.length === 0) return true;
    this.#pieces = [];
    return super.push(pieces.length === 1 ? pieces[0] : Buffer.concat(pieces));
  }
}
