import type { Duplex } from "node:stream";
import { turnFor } from "../write-turns.js";

/** Writes what comes from one connection to another, at its pace, and in turns with everything else that is large. */
export function pipeInTurns(from: Duplex, to: Duplex): void {
  const goOn = () => void from.resume();
  const write = (part: Buffer) => {
    if (to.write(part)) return true;
    from.pause();
    to.once("drain", goOn);
    return false;
  };
  from.on("data", (part: Buffer) => {
    const turn = turnFor(part.length);
    if (turn === undefined) {
      write(part);
      return;
    }
    from.pause();
    void turn.then(() => write(part) && goOn());
  });
  from.once("end", () => void to.end());
  from.resume();
}
