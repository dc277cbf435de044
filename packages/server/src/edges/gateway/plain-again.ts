import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";

/**
 * Serves a request as if it had not asked to upgrade. Once there is an upgrade listener, Node hands it every request
 * that asks for any protocol, such as `h2c`, which some clients always offer. The request is put back onto the socket
 * without the offer.
 */
export function plainAgain(server: Server, request: IncomingMessage, socket: Duplex, head: Buffer): void {
  const { method, url, httpVersion, rawHeaders } = request;
  const lines = [`${method} ${url} HTTP/${httpVersion}`];
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const [name, value] = [rawHeaders[at] as string, rawHeaders[at + 1] as string];
    const lower = name.toLowerCase();
    if (lower === "upgrade" || lower === "http2-settings") continue;
    const left = lower === "connection" ? plainConnection(value) : value;
    if (left !== "") lines.push(`${name}: ${left}`);
  }
  socket.unshift(Buffer.concat([Buffer.from(`${lines.join("\r\n")}\r\n\r\n`, "latin1"), head]));
  server.emit("connection", socket);
  socket.resume();
}

const plainConnection = (value: string): string =>
  value
    .split(",")
    .map((part) => part.trim())
    .filter((part) => !/^(upgrade|http2-settings)$/i.test(part))
    .join(", ");

/** Calls `goOn` once earlier replies on the connection are written: clients may pipeline requests. */
export function afterReplies(socket: Duplex & { _httpMessage?: ServerResponse }, goOn: () => void): void {
  const before = socket._httpMessage;
  if (socket.destroyed) return;
  if (!before) {
    goOn();
    return;
  }
  // Node has detached from this socket, so forward "drain" to the reply ourselves
  const hasRoom = () => void before.emit("drain");
  socket.on("drain", hasRoom);
  before.once("close", () => {
    socket.off("drain", hasRoom);
    setImmediate(() => afterReplies(socket, goOn));
  });
}
