import type { Readable, Writable } from "node:stream";
import { realTime } from "../../clock.js";
import { limits } from "../../limits/index.js";
import { turnFor } from "../shared/replies/write-turns.js";

/**
 * Copies one connection to another at its pace, taking turns with other large transfers. If the other takes nothing for
 * a while, both end: a paused connection does not tell that its peer has gone.
 */
export function pipeInTurns(from: Readable, to: Writable): void {
  const goOn = () => void from.resume();
  const write = (part: Buffer) => {
    if (to.write(part)) return true;
    from.pause();
    const stalled = realTime.after(limits.gateStallMs, () => {
      from.destroy();
      to.destroy();
    });
    const end = () => realTime.cancel(stalled);
    to.once("close", end);
    to.once("drain", () => {
      to.off("close", end);
      end();
      goOn();
    });
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
