import type { Duplex } from "node:stream";
import { limits } from "../../limits.js";

/**
 * What a client says before its WebSocket is agreed to. Somebody has to read it: on a connection that nobody reads it is not
 * noticed that its client has gone. One that says much has not waited for the answer (RFC 6455, 4.1), and goes.
 */
export class Ahead {
  readonly #socket: Duplex;
  readonly #parts: Buffer[];
  #bytes: number;
  readonly #hear = (part: Buffer) => {
    this.#parts.push(part);
    this.#bytes += part.length;
    if (this.#bytes > limits.gateAheadBytesMax) this.#socket.destroy();
  };
  readonly #end = () => void this.#socket.destroy();

  constructor(socket: Duplex, head: Buffer) {
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
