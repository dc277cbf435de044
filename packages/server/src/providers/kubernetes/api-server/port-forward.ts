import { Duplex } from "node:stream";
import type { WebSocket } from "ws";
import { realTime } from "../../../clock.js";
import { RouteAway } from "../../../domain/workers/worker-address.js";
import { limits } from "../../../limits/index.js";
import { type Cluster, detailOf, statusOf } from "./cluster.js";

/** The channels of the one port that is forwarded. */
const dataChannel = 0;
const errorChannel = 1;
/** Each channel begins with the port's number. */
const portBytes = 2;

/**
 * Connects to a port of a pod through the API server. Throws an error whose `syscall` is `connect`: {@link RouteAway},
 * unless the pod is gone. A port that nobody listens on is told afterwards: the connection is then destroyed with such an
 * error.
 */
export async function forwardPort(cluster: Cluster, pod: string, port: number, lane: number): Promise<Duplex> {
  try {
    return new ForwardedPort(await cluster.openSocket(`${pod}/portforward?ports=${port}`, lane));
  } catch (error) {
    // whatever else it says, a proxy's words included, is not about the worker
    if (statusOf(error) !== 404)
      throw new RouteAway("the API server of its cluster does not lead to it now", detailOf(error));
    throw Object.assign(new Error("its pod is gone", { cause: error }), { syscall: "connect" });
  }
}

class ForwardedPort extends Duplex {
  readonly #socket: WebSocket;
  readonly #begun = new Set<number>();
  #hasData = false;
  /** Why the connection ends, once what has come is read. */
  #failure: Error | undefined;

  constructor(socket: WebSocket) {
    super({ allowHalfOpen: false });
    this.#socket = socket;
    socket.on("message", (message) => this.#hear(message as Buffer));
    socket.once("error", (error) => this.destroy(error));
    // the pod has closed the connection; a half-closed one is not a thing here
    socket.once("close", (code) => {
      if (this.#failure === undefined && inOrder.includes(code)) this.push(null);
      else this.#fail(new Error("the connection through the cluster's API server broke"));
    });
  }

  #hear(message: Buffer): void {
    const channel = message[0] ?? -1;
    if (!this.#begun.has(channel)) {
      this.#begun.add(channel);
      if (message.length <= 1 + portBytes) return;
    }
    if (channel === errorChannel) this.#complain(message.toString("utf8", 1).slice(0, limits.clusterMessageCharsMax));
    if (channel !== dataChannel || message.length === 1) return;
    this.#hasData = true;
    if (!this.push(message.subarray(1))) this.#socket.pause();
  }

  #complain(message: string): void {
    // nothing was sent to a worker that does not listen
    const isUnsent = !this.#hasData && /connection refused/i.test(message);
    this.#fail(Object.assign(new Error(message), isUnsent ? { syscall: "connect" } : {}));
  }

  /** What came before belongs to the reader, who may be slow. */
  #fail(error: Error): void {
    this.#failure ??= error;
    if (this.destroyed) return;
    if (this.readableLength === 0) this.destroy(this.#failure);
    else realTime.after(limits.portForwardDrainMs, () => this.#fail(error));
  }

  override _read(): void {
    if (this.#socket.isPaused) this.#socket.resume();
  }

  override _write(piece: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    const { portForwardBytesMax: max } = limits;
    for (let at = 0; at < piece.length; at += max) {
      const end = at + max;
      const frame = Buffer.concat([dataPrefix, piece.subarray(at, end)]);
      this.#socket.send(frame, end >= piece.length ? done : undefined);
    }
    if (piece.length === 0) done();
  }

  override _final(done: () => void): void {
    this.#socket.close();
    done();
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#socket.terminate();
    done(error);
  }
}

const dataPrefix = Buffer.from([dataChannel]);
/** The codes of WebSockets that were closed in order, with or without a code. */
const inOrder = [1_000, 1_005];
