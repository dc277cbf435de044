import type { FastifyInstance, FastifyReply } from "fastify";
import { PlainSignal, type Signal } from "../../../clock.js";
import { limits } from "../../../limits/index.js";
import { noRoom } from "../../../operations/jobs/lend-status.js";
import type { Needs } from "../../../operations/needs.js";
import { turns } from "../../../turns.js";
import { goneSignal } from "./replies.js";
import { type Pieces, sendLentReply } from "./send-lent.js";

declare module "fastify" {
  interface FastifyRequest {
    /** The memory for its reply; set only in scopes of `lendRooms`. */
    room: Room;
  }
}

/** The memory on loan to one management request, from before its body is parsed until its reply is sent. */
export class Room {
  readonly #parts: Needs<"shares" | "clock" | "emit">;
  readonly #ownerNo: number;
  /** Aborts when its reply is sent or its client has gone: what is lent after that would never be given back. */
  readonly #over = new PlainSignal();
  #hasEntered = false;
  #share: Awaited<ReturnType<Needs<"shares">["shares"]["ask"]>>;

  constructor(parts: Needs<"shares" | "clock" | "emit">, ownerNo: number, gone: Signal) {
    this.#parts = parts;
    this.#ownerNo = ownerNo;
    if (gone.aborted) this.close();
    else gone.addEventListener("abort", () => this.close());
  }

  /**
   * Takes memory for the reply and for a body of that many bytes. To be called before the body is parsed; does nothing the
   * second time.
   */
  async enter(bodyBytes: number): Promise<void> {
    if (this.#hasEntered) return;
    this.#hasEntered = true;
    await this.take(Math.max(limits.replyBytesMax, bodyBytes * limits.parsedBytesPerByte));
  }

  /**
   * Does work that blocks the thread, in a turn of the owner's. The turn is asked for right before the work: of requests
   * that got their memory together, each would otherwise find time left. Refuses if the client has gone meanwhile.
   */
  async work<T>(work: () => T): Promise<T> {
    if (turns.isOver) await turns.take([this.#ownerNo]);
    if (this.#over.aborted) throw noRoom();
    return work();
  }

  /** Exchanges the loan for one of `bytes`. Refuses if no memory becomes free in time. */
  async take(bytes: number): Promise<void> {
    this.#share?.release(); // holding some while waiting for more could deadlock
    this.#share = await this.#parts.shares.ask(this.#ownerNo, bytes, this.#over);
    if (this.#over.aborted) this.#share?.release();
    if (!this.#share || this.#over.aborted) throw noRoom();
  }

  /** Gives the memory back for good: whoever still waits for some is refused. */
  close(): void {
    this.#over.abort();
    this.#share?.release();
  }

  /** Sends a long reply at its client's pace, then gives the memory back. */
  send(reply: FastifyReply, pieces: Pieces): Promise<FastifyReply> {
    const { shares } = this.#parts;
    return sendLentReply(this.#parts, reply, {
      pieces,
      release: () => this.close(),
      isWanted: () => shares.isWanted,
    });
  }
}

/** Lends memory for the reply to each request of a scope, and sends long replies at their clients' pace. */
export function lendRooms(app: FastifyInstance, parts: Needs<"shares" | "clock" | "emit">): void {
  app.addHook("preParsing", (request, reply, payload, done) => {
    if (request.caller) {
      // pages without a key are small
      request.room = new Room(parts, request.caller.ownerNo, goneSignal(reply));
      reply.raw.once("close", () => request.room.close());
    }
    done(null, payload);
  });
  app.addHook("preHandler", async (request) => {
    if (!request.room) return;
    await request.room.enter(0);
    await request.room.work(() => {}); // the handler's
  });
  app.addHook("onSend", (request, reply, payload, done) => {
    if (typeof payload !== "string" || payload.length <= limits.textReadBytesMax || !request.room) {
      request.room?.close();
      done(null, payload);
      return;
    }
    // the reply is sent here, so Fastify must not wait for it
    void request.room.send(reply, [payload]);
  });
}
