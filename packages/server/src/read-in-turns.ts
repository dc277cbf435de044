import type { Socket } from "node:net";
import { type Lane, turns } from "./turns.js";

/**
 * Has a connection's bytes read in turns of the event loop: hundreds of replies that arrive together, each with
 * hundreds of headers or hints, take longer to parse than other requests should wait.
 */
export function readInTurns(socket: Socket, lane: Lane): void {
  const emit = socket.emit.bind(socket);
  let isWaiting = false;
  const read = (): boolean => {
    isWaiting = false;
    return emit("readable");
  };
  socket.emit = (event: string | symbol, ...args: unknown[]): boolean => {
    if (event === "readable") {
      if (isWaiting) return true; // that turn reads everything
      if (!turns.isOver) return emit(event);
      isWaiting = true;
      turns.wait(lane, () => isWaiting && read());
      return true;
    }
    // what arrived before the connection ended belongs to the reply
    if (isWaiting && (event === "error" || event === "close")) read();
    return emit(event, ...args);
  };
}
