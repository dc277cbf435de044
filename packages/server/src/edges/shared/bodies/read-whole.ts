import type { IncomingMessage } from "node:http";
import { Joined } from "../../../json/json.js";
import { CountedBody, tooManyBodies } from "./body-account.js";

/** What is done with a body. */
export interface Whole {
  /** `release` is to be called once it is no longer in memory. */
  readonly then: (body: Buffer, release: () => void) => void;
  /** There are too many in memory; what still comes of it is the caller's to read away. */
  readonly refuse: (error: Error) => void;
}

const nothing = () => {};

/** Reads a client's small body whose length is announced; mostly it comes in one piece. Of one whose client goes away nothing is heard. */
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
  const take = (part: Buffer) => {
    if (counted.count(part.length)) return body.add(part);
    detach();
    counted.release();
    refuse(tooManyBodies());
  };
  const end = () => {
    counted.end();
    then(body.whole(), release);
  };
  // after a body's end its bytes are still in memory
  const close = () => void (request.complete || release());
  counted.begin(() => detach().resume());
  request.on("data", take).once("end", end).once("close", close);
}
