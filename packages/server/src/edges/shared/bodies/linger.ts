import type { IncomingMessage } from "node:http";
import type { FastifyReply } from "fastify";
import { realTime } from "../../../clock.js";
import { limits } from "../../../limits/index.js";
import { discardPace } from "./pace.js";

/**
 * Lets a client that is still sending read why it was refused: closing at once would reset the connection. The rest of
 * its body is discarded, within bounds and at a slow pace.
 */
export function linger(request: IncomingMessage, reply: FastifyReply): void {
  reply.header("connection", "keep-alive");
  readAway(request);
}

/** Discards the rest of a body, within those bounds. */
export function readAway(request: IncomingMessage): void {
  let bytes = 0;
  const end = () => request.socket.destroy();
  const timer = realTime.after(limits.lingerMs, end).unref();
  request.on("data", (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > limits.lingerBytesMax) return end();
    discardPace.count(request, chunk.length);
  });
  const over = () => {
    realTime.cancel(timer);
    request.socket.off("close", over);
  };
  request.once("close", over).once("end", over);
  request.socket.once("close", over); // once its reply is sent, the request itself emits no "close"
  request.resume();
}
