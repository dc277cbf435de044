import { randomUUID } from "node:crypto";
import { createServer, type RequestListener, type Server } from "node:http";
import { Refusal } from "../../../errors.js";
import { limits } from "../../../limits/index.js";
import { PiecedRequest } from "../bodies/pieced-request.js";
import { sendPlainRefusal } from "../replies/plain-refusal.js";
import { type Connections, keepRoom } from "./keep-room.js";
import { listen } from "./listen.js";
import { ownConnection, takeTurns } from "./pipelines.js";

/** The listening socket, opened before anything else: until `take` is called, every request is refused with 503. */
export interface Door {
  readonly server: Server;
  readonly port: number;
  take(listener: RequestListener): void;
  readonly connections: Connections;
  close(): Promise<void>;
}

const starting = new Refusal("UNAVAILABLE", "The service is starting; try again in a second.", {
  retryAfterSeconds: 1,
});

const notYet: RequestListener = (request, reply) => {
  request.resume();
  sendPlainRefusal(reply, randomUUID(), starting);
};

/** Starts to listen; rejects with the system's error if it cannot. */
export async function openDoor(
  host: string,
  port: number,
  connectionsMax: number = limits.connectionsMax,
): Promise<Door> {
  let listener = notYet;
  const server = createServer({
    IncomingMessage: PiecedRequest,
    maxHeaderSize: limits.headerBytesMax,
    headersTimeout: limits.headersTimeoutMs,
    requestTimeout: limits.requestTimeoutMs,
    keepAliveTimeout: limits.keepAliveMs,
    noDelay: true,
    requireHostHeader: false, // checked later, with a refusal that says so
  });
  const inTurn = takeTurns(server, (request, reply) => listener(request, reply));
  server.on("request", inTurn);
  server.on("checkContinue", inTurn); // the route that takes the request decides whether to continue
  server.on("checkExpectation", inTurn); // an unknown expectation may be ignored
  server.maxHeadersCount = 0; // bounded by bytes: with a count, Node would drop some headers, such as a second Host
  const room = keepRoom(server, connectionsMax);
  const connections: Connections = {
    know(socket, ownerNo) {
      ownConnection(socket, ownerNo);
      return room.know(socket, ownerNo);
    },
  };
  const listening = await listen(server, host, port);
  return {
    server,
    port: listening.port,
    take: (taken) => {
      listener = taken;
    },
    connections,
    async close() {
      const closed = listening.close();
      server.closeAllConnections();
      await closed;
    },
  };
}
