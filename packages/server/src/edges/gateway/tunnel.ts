import { type IncomingMessage, request as open, type RequestOptions, type ServerResponse } from "node:http";
import { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { realTime } from "../../clock.js";
import { limits } from "../../limits/index.js";
import type { Ahead } from "./ahead.js";
import { boundConnect } from "./connections/connect.js";
import type { Reach } from "./connections/dialler.js";
import { cut, MalformedReply, type Outcome } from "./forward.js";
import { declined, replyHeaders } from "./headers.js";
import { pipeInTurns } from "./pipe-in-turns.js";
import { Declined } from "./verdict.js";

/** A client that asks for a WebSocket, and its connection. */
export interface Asking {
  readonly socket: Duplex;
  /** What the client sends after the request. */
  readonly ahead: Ahead;
  readonly reply: ServerResponse;
}

export interface Opening {
  readonly path: string;
  readonly headers: readonly string[];
  /** Limit until the worker replies. */
  readonly silenceMs: number;
  /** Whether the peer is another server, which may give the request back. */
  readonly isServer?: true;
}

/** Asks a worker for a WebSocket. If it agrees, joins both ends until one is gone; if not, passes its reply on. */
export function tunnel(
  { host, port, connect }: Pick<Reach, "host" | "port" | "connect">,
  { path, headers, silenceMs, isServer }: Opening,
  asking: Asking,
  done: (outcome: Outcome) => void,
): void {
  const { socket, ahead, reply } = asking;
  const upgrading = [...headers, "Connection", "Upgrade", "Upgrade", "websocket"];
  const asked = open({
    host,
    port,
    path,
    headers: upgrading,
    ...(connect ? { createConnection: connecting(() => connect(port)) } : { agent: false }),
    setHost: false,
    timeout: silenceMs,
  });
  boundConnect(asked);
  // only sockets time out by themselves
  const late = connect && realTime.after(silenceMs, () => timeOut());
  let isOver = false;
  const over = (outcome: Outcome) => {
    if (isOver) return;
    isOver = true;
    realTime.cancel(late);
    socket.off("close", leave);
    done(outcome);
  };
  const leave = () => {
    over({ kind: "gone" });
    asked.destroy();
  };
  socket.once("close", leave);
  const timeOut = () => {
    const error = Object.assign(new Error("no answer"), { code: "UND_ERR_HEADERS_TIMEOUT" });
    if (!isAnswered) over({ kind: "unanswered", error }); // a request without a connection yet would not tell
    asked.destroy(error);
  };
  asked.once("timeout", timeOut);
  asked.once("error", (error) => over({ kind: "unanswered", error }));
  /** The worker's reply cannot be passed on. */
  const malformed = (cause: unknown) => {
    over({ kind: "unanswered", error: new MalformedReply("the worker's answer cannot be passed on", { cause }) });
    asked.destroy();
  };
  let isAnswered = false;
  asked.once("response", (answer) => {
    isAnswered = true;
    realTime.cancel(late);
    const why = answer.headers[declined];
    if (isServer && why !== undefined) {
      over({ kind: "unanswered", error: new Declined(why === "lost" ? "lost" : "unsent") });
      asked.destroy();
      return;
    }
    try {
      passOn(answer, reply, over);
    } catch (error) {
      malformed(error);
    }
  });
  asked.once("upgrade", (answer, worker, workerHead) => {
    realTime.cancel(late);
    worker.on("error", () => {});
    try {
      if (isAnswered) throw new Error("it answered twice");
      if (answer.headers.upgrade?.toLowerCase() !== "websocket") throw new Error("it switched to another protocol");
      const agreed = [...replyHeaders(answer.rawHeaders), "Connection", "Upgrade", "Upgrade", "websocket"];
      reply.writeHead(101, answer.statusMessage ?? "", agreed);
      reply.flushHeaders();
    } catch (error) {
      worker.destroy();
      malformed(error);
      return;
    }
    socket.off("close", leave);
    reply.detachSocket(socket as never);
    join([socket, worker], [ahead.take(), workerHead], () => over({ kind: "ended" }));
  });
  asked.end();
}

/** Has a request use a connection that is yet to be made. */
const connecting =
  (connect: () => Promise<Duplex>): NonNullable<RequestOptions["createConnection"]> =>
  (_options, made) => {
    connect().then(
      (stream) => made(null, stream),
      (error) => made(error, undefined as never),
    );
    return undefined;
  };

/** Passes on the reply of a worker that has declined; the connection then ends. */
function passOn(answer: IncomingMessage, reply: ServerResponse, over: (outcome: Outcome) => void): void {
  reply.writeHead(answer.statusCode ?? 502, answer.statusMessage ?? "", replyHeaders(answer.rawHeaders));
  answer.once("error", () => {
    over({ kind: "broken" });
    cut(reply);
  });
  reply.once("finish", () => over({ kind: "ended" }));
  pipeInTurns(answer, reply);
}

/** Joins two connections, each at the other's pace. */
function join(ends: readonly [Duplex, Duplex], heads: readonly [Buffer, Buffer], over: () => void): void {
  const [client, worker] = ends;
  const destroyBoth = () => {
    client.destroy();
    worker.destroy();
  };
  for (const end of ends) {
    end.on("error", () => {});
    if (end instanceof Socket) {
      end.setTimeout(0);
      end.setNoDelay();
      // a WebSocket may be quiet for hours: only this notices a peer that vanished
      end.setKeepAlive(true, limits.gateKeepAliveMs);
    }
    end.once("close", () => {
      destroyBoth();
      over();
    });
    // a half-closed WebSocket is useless: data in flight gets a moment
    end.once("end", () => void realTime.after(limits.gateConnectMs, destroyBoth).unref());
  }
  if (heads[0].length > 0) worker.write(heads[0]);
  if (heads[1].length > 0) client.write(heads[1]);
  pipeInTurns(client, worker);
  pipeInTurns(worker, client);
}
