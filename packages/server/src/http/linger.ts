import type { IncomingMessage } from "node:http";
import type { FastifyReply } from "fastify";
import { limits } from "../limits.js";

const resting = new Set<IncomingMessage>();
let bytesLeft: number = limits.lingerBytesPerTurn;
let isTurnSet = false;

/** Lets a request rest until the next turn: what is only thrown away must not keep the event loop from its work. */
function rest(request: IncomingMessage): void {
  request.pause();
  resting.add(request);
  if (isTurnSet) return;
  isTurnSet = true;
  setTimeout(() => {
    isTurnSet = false;
    bytesLeft = limits.lingerBytesPerTurn;
    const all = [...resting];
    resting.clear();
    for (const each of all) each.resume();
  }, limits.lingerTurnMs);
}

/**
 * A client that still sends would have its connection reset before it reads why it was refused: the rest is read away,
 * within bounds of each connection, and at a pace that all of them share.
 */
export function linger(request: IncomingMessage, reply: FastifyReply): void {
  reply.header("connection", "keep-alive");
  let bytes = 0;
  const end = () => request.socket.destroy();
  const timer = setTimeout(end, limits.lingerMs).unref();
  request.on("data", (chunk: Buffer) => {
    bytes += chunk.length;
    bytesLeft -= chunk.length;
    if (bytes > limits.lingerBytesMax) end();
    else if (bytesLeft <= 0) rest(request);
  });
  for (const event of ["close", "end"]) {
    request.once(event, () => {
      clearTimeout(timer);
      resting.delete(request);
    });
  }
  request.resume();
}
