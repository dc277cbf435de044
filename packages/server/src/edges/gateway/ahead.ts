import type { Duplex } from "node:stream";
import { limits } from "../../limits/index.js";

/**
 * What a client says before its offer to upgrade is answered. Somebody has to read it: on a connection that nobody reads it is
 * not noticed that its client has gone.
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

  /** `onMuch`: when it has said more than is kept. */
  constructor(socket: Duplex, head: Buffer, onMuch: () => void) {
    this.#onMuch = onMuch;
    this.#socket = socket;
    this.#parts = [head];
    this.#bytes = head.length;
    socket.on("data", this.#hear).once("end", this.#end);
  }

  /** All of it; from now on somebody else reads. */
  take(): Buffer {
    this.#socket.off("data", this.#hear).off("end", this.#end).pause();
    return Buffer.concat(this.#parts.splice(0));
  }
}
