import type { IncomingMessage, RequestListener, Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { realTime } from "../../../clock.js";
import { limits } from "../../../limits/index.js";
import { type Lane, turns } from "../../../turns.js";
import { mayParse, spendPieces } from "../bodies/piece-turns.js";
import { handOverPieces, joinPieces, piecesParsed } from "../bodies/pieced-request.js";

/** Bytes of pipelined requests that wait for earlier replies, on all connections. */
let bytesAhead = 0;
let pipelinesMade = 0;

/**
 * Bounds the cost of pipelined requests. Node parses all that a socket has brought at once and hands over every request
 * in it: 64 KB hold more than a thousand, and all of them would be parsed, served and answered before other connections
 * get a turn. Here a connection's bytes reach the parser in small slices, and its requests are handed over one after
 * the other, each in a turn of its own. All bodies share a budget per turn, because 64 KB also hold ten thousand chunks
 * of one byte.
 */
export function takeTurns(server: Server, listener: RequestListener): RequestListener {
  server.on("connection", (socket) => pipelines.set(socket, new Pipeline(socket, listener)));
  // Node stops parsing such a connection. This listener comes first, so that the gateway finds the bytes in place.
  server.prependListener("upgrade", (request) => {
    const pipeline = pipelines.get(request.socket);
    pipeline?.leave();
    // the next reader would wait for an end that has come already
    if (pipeline?.hasEnded) request.socket.destroy();
  });
  server.prependListener("clientError", (error, socket) => {
    if (isHeldBack(error, socket as Socket)) return;
    pipelines.get(socket as Socket)?.leave();
    if (server.listenerCount("clientError") === 1) socket.destroy(); // no other listener replies during the start
  });
  return (request, reply) => {
    const pipeline = pipelines.get(request.socket);
    if (pipeline?.serves(listener)) pipeline.add(request, reply);
    else listener(request, reply); // passed on by another server object, where it had its turn
  };
}

const pipelines = new WeakMap<Socket, Pipeline>();

/**
 * Whether a request timed out only because it waits behind an earlier request that has no reply yet. Its client is not
 * to blame, and the earlier reply must not be cut off.
 */
export const isHeldBack = (error: Error, socket: Socket): boolean =>
  (error as NodeJS.ErrnoException).code === "ERR_HTTP_REQUEST_TIMEOUT" && pipelines.get(socket)?.forgive() === true;

/** Notes whose connection a socket is: from now on its bytes are parsed in that owner's turns. */
export const ownConnection = (socket: Socket, ownerNo: number): void => pipelines.get(socket)?.belongTo(ownerNo);

type Exchange = readonly [IncomingMessage, ServerResponse];

class Pipeline {
  readonly #no = pipelinesMade++;
  /** Whose connection it is, once a request has shown that. */
  #ownerNo: number | undefined;
  readonly #socket: Socket;
  readonly #listener: RequestListener;
  readonly #parse: (bytes: Buffer) => void;
  /** Bytes received and not parsed yet; at most what a socket brings at a time. */
  #unparsed: Buffer | undefined;
  /** Requests parsed in the same slice as the current one. */
  readonly #waiting: Exchange[] = [];
  #current: Exchange | undefined;
  /** The request parsed last. The next bytes may be its body, even if it has its reply already. */
  #parsed: IncomingMessage | undefined;
  /** Whether its body waits for its share of a turn. */
  #isHeldBack = false;
  /** Whether its bytes wait for a turn. */
  #waitsForTurn = false;
  /** Whether one of its requests has had its reply. */
  #wasServed = false;
  /** How much of what is not parsed yet counts as sent ahead. */
  #bytesAhead = 0;
  /** Whether the next request has no time limit any more, because its limit ran out while it was held back. */
  #isUntimed = false;
  readonly #end: () => void;
  #hasEnded = false;
  /** Whether its socket has another reader now. */
  #hasLeft = false;

  constructor(socket: Socket, listener: RequestListener) {
    this.#socket = socket;
    this.#listener = listener;
    const [parse] = socket.listeners("data") as [(bytes: Buffer) => void];
    const end = socket.listeners("end").at(-1) as () => void; // the one before is the socket's own
    this.#parse = parse;
    this.#end = end;
    socket.off("data", parse).off("end", end);
    socket.on("data", this.#take).on("end", this.#takeEnd).on("resume", this.#stayPaused);
    socket.on("close", this.#forget);
  }

  /** Whether the client has ended its side while some of its bytes were not parsed yet. */
  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  belongTo(ownerNo: number): void {
    this.#ownerNo = ownerNo;
  }

  /**
   * Connections take turns to have their bytes parsed: each of thousands may bring a slice at one moment. Those of an
   * owner share the owner's turns. Strangers' first lines come before what they send after them, and whoever keeps a
   * connection to look at the health does not wait behind thousands of new ones. Newcomers' addresses take turns.
   */
  get #lane(): Lane {
    const connection = `connection ${this.#no}`;
    if (this.#ownerNo !== undefined) return [this.#ownerNo, connection];
    if (this.#isInBody) return ["strangers' bodies", connection];
    return this.#wasServed ? ["strangers", connection] : ["newcomers", this.#socket.remoteAddress ?? ""];
  }

  /** Whether its requests are for this listener. */
  serves(listener: RequestListener): boolean {
    return listener === this.#listener;
  }

  /** If a request is held back behind another one, gives it more time and returns true. */
  forgive(): boolean {
    const asked = this.#current?.[0];
    const isItsOwn = asked === this.#parsed && asked?.complete === false; // a client that is slow to send its body
    if (asked === undefined || isItsOwn) return false;
    this.#isUntimed = true;
    return true;
  }

  /** Takes a parsed request: it is handed over now, or once earlier requests have their replies. */
  add(request: IncomingMessage, reply: ServerResponse): void {
    this.#parsed = request;
    if (this.#current) this.#waiting.push([request, reply]);
    else this.#begin([request, reply]);
  }

  /** Stops parsing; unparsed bytes go back to the socket for its next reader. */
  leave(): void {
    const rest = this.#unparsed;
    this.#unparsed = undefined;
    this.#hasLeft = true;
    this.#forget();
    this.#socket
      .off("close", this.#forget)
      .off("data", this.#take)
      .off("end", this.#takeEnd)
      .off("resume", this.#stayPaused);
    if (rest !== undefined && !this.#socket.destroyed) this.#socket.unshift(rest);
  }

  readonly #take = (bytes: Buffer): void => {
    this.#unparsed = this.#unparsed === undefined ? bytes : Buffer.concat([this.#unparsed, bytes]);
    if (this.#waitsForTurn || turns.isOver) {
      this.#waitForTurn();
      this.#socket.pause();
    } else if (!this.#parseOn()) this.#socket.pause();
    if (this.#countAhead(this.#isInBody ? 0 : (this.#unparsed?.length ?? 0))) this.#socket.destroy();
  };

  readonly #forget = (): void => void this.#countAhead(0);

  #waitForTurn(): void {
    if (this.#waitsForTurn) return;
    this.#waitsForTurn = true;
    turns.wait(this.#lane, () => {
      this.#waitsForTurn = false;
      if (!this.#socket.destroyed) this.#readOn();
    });
  }

  /** Counts what this connection has sent ahead; true if all connections together have sent too much. */
  #countAhead(bytes: number): boolean {
    const isMore = bytes > this.#bytesAhead;
    bytesAhead += bytes - this.#bytesAhead;
    this.#bytesAhead = bytes;
    return isMore && bytesAhead > limits.pipelinedBytesMax;
  }

  /** Delays the end: Node would treat it as the end of the parsed requests, and drop those without a reply. */
  readonly #takeEnd = (): void => {
    if (this.#unparsed !== undefined) this.#hasEnded = true;
    else if (turns.isOver) turns.wait(this.#lane, this.#endInTurn);
    else this.#end.call(this.#socket);
  };

  /** Thousands of connections may end at one moment, each in the middle of a request that is refused then. */
  readonly #endInTurn = (): void => {
    if (!this.#socket.destroyed && !this.#hasLeft) this.#end.call(this.#socket);
  };

  /** Node resumes a socket whenever a body is read further. */
  readonly #stayPaused = (): void => {
    if (this.#unparsed !== undefined) this.#socket.pause();
  };

  /** Returns false if nothing more should be read for now. */
  #parseOn(): boolean {
    let hasRoom = true;
    joinPieces();
    try {
      while (this.#unparsed !== undefined && !this.#waitsForTurn && this.#mayParse()) this.#parseSlice(this.#unparsed);
    } finally {
      hasRoom = handOverPieces();
    }
    return hasRoom && this.#unparsed === undefined;
  }

  get #isInBody(): boolean {
    return this.#parsed?.complete === false;
  }

  #mayParse(): boolean {
    if (this.#isHeldBack || (this.#current && this.#current[0] !== this.#parsed)) return false;
    if (!this.#isInBody) return this.#current === undefined;
    this.#isHeldBack = !mayParse(this.#goOnInTurn);
    return !this.#isHeldBack;
  }

  #parseSlice(unparsed: Buffer): void {
    const isInBody = this.#isInBody;
    const piecesBefore = piecesParsed();
    const beganAt = isInBody ? realTime.monotonicMs() : 0;
    const slice = unparsed.subarray(0, isInBody ? limits.bodySliceBytes : limits.headSliceBytes);
    this.#unparsed = slice.length < unparsed.length ? unparsed.subarray(slice.length) : undefined;
    this.#parse.call(this.#socket, slice);
    // the body waits in its owner's lane, so that the heads of other new connections come first
    if (!isInBody && this.#isInBody && this.#unparsed !== undefined && turns.isOver) this.#waitForTurn();
    const pieces = piecesParsed() - piecesBefore;
    // Node drops the pieces of a body whose reply has ended before they are counted: they count by the time they took
    if (isInBody) spendPieces(pieces || Math.ceil((realTime.monotonicMs() - beganAt) * limits.droppedPiecesPerMs));
    else if (pieces > 1) spendPieces(pieces); // a small request in one piece costs nothing
  }

  #begin(exchange: Exchange): void {
    this.#current = exchange;
    const [request, reply] = exchange;
    reply.once("close", this.#next);
    this.#listener(request, reply);
  }

  readonly #next = (): void => {
    this.#current = undefined;
    this.#wasServed = true;
    if (this.#waiting.length > 0 || this.#unparsed !== undefined) setImmediate(this.#goOnLater);
    else if (this.#hasEnded) this.#end.call(this.#socket);
  };

  /** Thousands of connections may each have a next request at one moment. */
  readonly #goOnLater = (): void => {
    if (turns.isOver) turns.wait(this.#lane, this.#goOn);
    else this.#goOn();
  };

  readonly #goOn = (): void => {
    if (this.#socket.destroyed || this.#current) return;
    if (this.#isUntimed) this.#timeNext();
    const waiting = this.#waiting.shift();
    if (waiting) this.#begin(waiting);
    this.#readOn();
  };

  readonly #goOnInTurn = (): void => {
    this.#isHeldBack = false;
    if (!this.#socket.destroyed) this.#readOn();
  };

  #readOn(): void {
    if (this.#unparsed !== undefined && !this.#waitsForTurn && this.#parseOn()) this.#socket.resume();
    this.#countAhead(this.#isInBody ? 0 : (this.#unparsed?.length ?? 0));
    const isWhole = this.#current !== undefined && !this.#isInBody; // its reply comes first
    if (this.#hasEnded && this.#unparsed === undefined && !isWhole) this.#end.call(this.#socket);
  }

  /** Gives a request that Node no longer times the usual time limit. */
  #timeNext(): void {
    this.#isUntimed = false;
    const before = this.#parsed;
    const late = realTime
      .after(limits.headersTimeoutMs, () => {
        if (this.#parsed === before) this.#socket.destroy();
      })
      .unref();
    this.#socket.once("close", () => realTime.cancel(late));
  }
}
