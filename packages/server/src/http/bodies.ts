import type { Readable } from "node:stream";
import type { FastifyInstance, FastifyRequest } from "fastify";
import { bodyTooLarge, Refusal } from "../errors.js";
import { Joined, PartedText, type Sent } from "../json.js";
import { limits } from "../limits.js";
import { pace } from "./pace.js";

declare module "fastify" {
  interface FastifyRequest {
    largeBody?: LargeBody;
  }
}

/** Bytes of large bodies that are being received or stored: clients' and workers' apart, so that neither refuses the other. */
const inFlight = { clients: 0, workers: 0 };
const most = { clients: limits.bodiesBytesMax, workers: limits.wordsBytesMax };

/** What a large body counts, and holds, until it is released. */
class LargeBody {
  readonly #from: keyof typeof inFlight;
  #bytes = 0;
  #isReleased = false;
  text: PartedText | undefined;

  constructor(from: keyof typeof inFlight) {
    this.#from = from;
  }

  /** Counts bytes that came; false where there are too many on their way. */
  count(bytes: number): boolean {
    if (this.#isReleased) return true; // what still comes is read away
    if (inFlight[this.#from] + bytes > most[this.#from]) return false;
    inFlight[this.#from] += bytes;
    this.#bytes += bytes;
    return true;
  }

  /** It is stored or refused: what it counted is free again, though the answer may take long. */
  release(): void {
    inFlight[this.#from] -= this.#bytes;
    this.#bytes = 0;
    this.#isReleased = true;
    this.text?.drop();
  }
}

/**
 * Counts the bytes of large bodies as they arrive, until they are released or the answer is written; too many at once are
 * refused for a moment. What was only announced is not counted: an idle upload holds up nobody.
 */
export function countBodies(app: FastifyInstance, from: keyof typeof inFlight): void {
  app.addHook("preParsing", (request, reply, payload, parse) => {
    if (announced(request) > limits.bodyBytesSmall) {
      const body = new LargeBody(from);
      request.largeBody = body;
      reply.raw.once("close", () => body.release());
    }
    parse(null, payload);
  });
}

const tooMany = () =>
  new Refusal("UNAVAILABLE", "Too many large bodies are on their way; try again in a second.", {
    retryAfterSeconds: 1,
  });

/** How long a body says it is. */
const announced = ({ headers }: FastifyRequest): number =>
  Number(headers["content-length"] ?? Number.POSITIVE_INFINITY);

/** A body as it comes: JSON that turns out to be large goes on to where it will be checked. */
class Arriving {
  readonly #request: FastifyRequest;
  readonly #isJson: boolean;
  /** How long it may become: what it says is believed up to what is taken. */
  readonly #bytesMax: number;
  #body: Joined | PartedText;

  /** `isJson`: nothing but to be checked and handed on is done with it. */
  constructor(request: FastifyRequest, isJson: boolean, bytesMax: number) {
    this.#request = request;
    this.#isJson = isJson;
    this.#bytesMax = Math.min(announced(request), bytesMax);
    this.#body = new Joined(this.#bytesMax);
  }

  get length(): number {
    return this.#body.length;
  }

  add(part: Buffer): void {
    this.#body.add(part);
    const { largeBody } = this.#request;
    const isSmall = this.length <= limits.bodyBytesSmall;
    if (isSmall || !this.#isJson || !largeBody || this.#body instanceof PartedText) return;
    const text = new PartedText(this.#bytesMax);
    text.add(this.#body.whole());
    largeBody.text = text;
    this.#body = text;
  }

  whole(): Sent {
    return this.#body instanceof Joined ? this.#body.whole() : this.#body;
  }
}

/** Hears a body part by part, a large one at the pace of all of them, until it ends or `hear` has an error for it. */
function follow(
  { largeBody }: FastifyRequest,
  payload: Readable,
  hear: (part: Buffer) => Error | undefined,
  over: (error: Error | null) => void,
): void {
  const end = (error: Error | null) => {
    payload.off("data", take);
    over(error);
  };
  const take = (part: Buffer) => {
    const { length } = part;
    const error = largeBody?.count(length) === false ? tooMany() : hear(part);
    if (largeBody) pace(payload, length);
    if (error) end(error);
  };
  payload.on("data", take);
  payload.once("end", () => end(null));
  payload.on("error", (error) => end(Object.assign(error, { statusCode: 400 })));
}

/** Bodies as bytes, under any content type: the route reads them. */
export function takeBytes(app: FastifyInstance): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("*", (request, payload, done) => {
    const bytesMax = request.routeOptions.bodyLimit ?? 0;
    const length = announced(request);
    if (length !== Number.POSITIVE_INFINITY && length > bytesMax) return done(bodyTooLarge(bytesMax));
    const body = new Arriving(request, true, bytesMax);
    const hear = (part: Buffer) => {
      if (body.length + part.length > bytesMax) return bodyTooLarge(bytesMax);
      body.add(part);
      return undefined;
    };
    follow(request, payload, hear, (error) => done(error, body.whole()));
  });
}

/** Bodies of routes that have none are read away, label and all: clients send empty POSTs labelled JSON. */
export function ignoreBodies(app: FastifyInstance): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("*", (_request, payload, done) => {
    let bytes = 0;
    payload.on("data", (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes > limits.ignoredBytesMax) payload.destroy();
    });
    payload.on("error", () => {});
    done(null);
  });
}

/**
 * A worker's word: kept up to `bytesMax`, counted up to the hard limit, where we stop to listen; never refused.
 * `isJson`: it is only checked and handed on.
 */
export function takeWords(app: FastifyInstance, bytesMax: number, isJson: boolean): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("*", (request, payload, done) => {
    let body: Arriving | undefined = new Arriving(request, isJson, bytesMax);
    let bytes = 0;
    let isOver = false;
    const hear = (part: Buffer) => {
      bytes += part.length;
      if (bytes > bytesMax) body = undefined;
      else body?.add(part);
      if (bytes > limits.outputBytesHard && !isOver) {
        isOver = true;
        done(null, undefined);
      }
      // it is answered already: what still comes is read away, within bounds
      if (bytes > limits.outputBytesHard + limits.lingerBytesMax) payload.destroy();
      return undefined;
    };
    follow(request, payload, hear, (error) => isOver || done(error, body?.whole()));
  });
}
