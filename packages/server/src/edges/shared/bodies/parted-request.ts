import { IncomingMessage } from "node:http";

let isJoining = false;
let partsSeen = 0;
/** The request whose last parts are not handed over yet. Earlier ones in the same bytes have ended. */
let unfinished: PartedRequest | undefined;

/** How many parts of bodies were parsed since {@link joinParts}. */
export const partsParsed = (): number => partsSeen;

/**
 * From now on parts of a body are collected, to be handed over as one: a part costs its reader far more than a byte.
 */
export function joinParts(): void {
  isJoining = true;
  partsSeen = 0;
}

/** Hands over the collected parts of the unfinished body. Returns false if its reader has enough for now. */
export function handOverParts(): boolean {
  isJoining = false;
  const request = unfinished;
  unfinished = undefined;
  return request === undefined || request.handOver();
}

/** A request whose body arrives in as few parts as its socket's reads, however many chunks its client cuts it into. */
export class PartedRequest extends IncomingMessage {
  #parts: Buffer[] = [];

  override push(part: Buffer | null): boolean {
    if (part === null) {
      this.handOver();
      return super.push(null);
    }
    if (!isJoining) return super.push(part);
    partsSeen++;
    this.#parts.push(part);
    unfinished = this;
    return true;
  }

  handOver(): boolean {
    if (unfinished === this) unfinished = undefined;
    const parts = this.#parts;
    if (parts.length === 0) return true;
    this.#parts = [];
    return super.push(parts.length === 1 ? parts[0] : Buffer.concat(parts));
  }
}
