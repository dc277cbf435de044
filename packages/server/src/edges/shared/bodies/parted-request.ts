import { IncomingMessage } from "node:http";

let isJoining = false;
let partsSeen = 0;
/** The request whose last parts are not handed over yet: those before it in the same bytes have ended. */
let unfinished: PartedRequest | undefined;

/** Parts of bodies that were parsed since {@link joinParts}. */
export const partsParsed = (): number => partsSeen;

/** From now on the parts of a body are kept, to be handed over as one: a part costs its reader far more than a byte. */
export function joinParts(): void {
  isJoining = true;
  partsSeen = 0;
}

/** Hands over the parts of the body that has not ended. Returns false where its reader has enough for now. */
export function handOverParts(): boolean {
  isJoining = false;
  const request = unfinished;
  unfinished = undefined;
  return request === undefined || request.handOver();
}

/** A request whose body arrives in as few parts as the reads of its socket, into however many chunks its client cuts it. */
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
