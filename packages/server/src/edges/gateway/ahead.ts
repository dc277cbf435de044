import type { Duplex } from "node:stream";
import { limits } from "../../limits/index.js";

/**
 * Buffers what a client sends before its upgrade request is answered. The socket has to be read: otherwise we would not
 * notice that the client has gone.
 */
export class Ahead {
  readonly #socket: Duplex;
  readonly #parts: Buffer[];
  readonly #onMuch: () => void;
  #bytes: number;
  readonly #hear = (part: Buffer) => {
    this.#parts.push(part);
    this.#bytes += part.length;
    if (this.#bytes > limits.gateAheadBytesMax) this.#onMuch();
  };
  readonly #end = () => void this.#socket.destroy();

  /** `onMuch`: called when the client has sent more than is kept. */
  constructor(socket: Duplex, head: Buffer, onMuch: () => void) {
    this.#onMuch = onMuch;
    this.#socket = socket;
    this.#parts = [head];
    this.#bytes = head.length;
    socket.on("data", this.#hear).once("end", this.#end);
  }

  /** Stops reading and returns all that was buffered. */
  take(): Buffer {
    this.#socket.off("data", this.#hear).off("end", this.#end).pause();
    return Buffer.concat(this.#parts.splice(0));
  }
}
