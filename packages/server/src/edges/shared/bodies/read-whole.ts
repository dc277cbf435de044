import type { IncomingMessage } from "node:http";
import { Joined } from "../../../json/json.js";
import { CountedBody } from "./body-account.js";
import { tooManyBodies } from "./refuse-unread.js";

/** Callbacks for a body read whole. */
export interface Whole {
  /** `release` must be called once the body is no longer in memory. */
  readonly then: (body: Buffer, release: () => void) => void;
  /** Too many bodies are in memory. The caller must discard the rest of this one. */
  readonly refuse: (error: Error) => void;
}

const nothing = () => {};

/** Reads a client's small body of known length, mostly in one piece. If the client goes away, no callback is called. */
export function readWhole(request: IncomingMessage, ownerNo: number, { then, refuse }: Whole): void {
  const announced = Number(request.headers["content-length"] ?? 0);
  if (announced === 0) {
    request.once("end", () => then(Buffer.alloc(0), nothing)).resume();
    return;
  }
  const body = new Joined(announced);
  const counted = new CountedBody(request, "clients", ownerNo);
  const release = () => counted.release();
  const detach = () => request.off("data", take).off("end", end);
  const take = (piece: Buffer) => {
    if (counted.count(piece.length)) return body.add(piece);
    detach();
    counted.release();
    refuse(tooManyBodies());
  };
  const end = () => {
    counted.end();
    then(body.whole(), release);
  };
  // a complete body is still in memory
  const close = () => void (request.complete || release());
  counted.begin(() => detach().resume());
  request.on("data", take).once("end", end).once("close", close);
}
