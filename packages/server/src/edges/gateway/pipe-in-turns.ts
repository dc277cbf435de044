import type { Duplex } from "node:stream";
import { limits } from "../../limits/index.js";
import { turnFor } from "../shared/replies/write-turns.js";

/** Copies one connection to another at its pace, taking turns with other large transfers. */
export function pipeInTurns(from: Duplex, to: Duplex): void {
  const goOn = () => void from.resume();
  const write = (part: Buffer) => {
    if (to.write(part)) return true;
    from.pause();
    to.once("drain", goOn);
    return false;
  };
  /** The last part while it waits for its turn: the connection may end meanwhile. */
  let held: Promise<unknown> | undefined;
  from.on("data", (part: Buffer) => {
    const turn = turnFor(Math.max(part.length, limits.gatePieceBytes));
    if (turn === undefined) {
      write(part);
      return;
    }
    from.pause();
    held = turn.then(() => {
      held = undefined;
      if (write(part)) goOn();
    });
  });
  from.once("end", () => {
    const end = () => void to.end();
    if (held) void held.then(end);
    else end();
  });
  from.resume();
}
