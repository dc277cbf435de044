import type { Readable } from "node:stream";
import type { FastifyInstance, FastifyRequest } from "fastify";
import type { ApiKey } from "../../../domain/access/key.js";
import { bodyTooLarge } from "../../../errors.js";
import { ArrivingText, Joined, type ReceivedText } from "../../../json/json.js";
import { limits } from "../../../limits/index.js";
import { CountedBody, type Sender } from "./body-account.js";
import { readPace } from "./pace.js";
import { tooManyBodies } from "./refuse-unread.js";

declare module "fastify" {
  interface FastifyRequest {
    countedBody?: CountedBody;
  }
}

/**
 * Counts the bytes of bodies as they arrive, until they are released or the reply is written; while there are too many,
 * further ones are refused. Bytes that were only announced do not count, so that an idle upload delays no others.
 */
export function countBodies(
  app: FastifyInstance,
  sender: Sender,
  ownerOf: (request: FastifyRequest) => number = callerOf,
): void {
  app.addHook("preParsing", (request, reply, payload, parse) => {
    if (announced(request) > 0) {
      const body = new CountedBody(request.raw, sender, ownerOf(request));
      request.countedBody = body;
      if (reply.raw.closed) body.release();
      else reply.raw.once("close", () => body.release());
    }
    parse(null, payload);
  });
}

/** Not every route needs a key, but those without one read no bodies. */
const callerOf = ({ caller }: { readonly caller?: ApiKey }): number => caller?.ownerNo ?? 0;

/** The announced length of a body. */
const announced = ({ headers }: FastifyRequest): number =>
  Number(headers["content-length"] ?? Number.POSITIVE_INFINITY);

/** An arriving body. JSON that turns out to be large is moved on to where it will be checked. */
class Arriving {
  readonly #request: FastifyRequest;
  readonly #isJson: boolean;
  /** The most it may grow to: the announced length, up to the route's limit. */
  readonly #bytesMax: number;
  #body: Joined | ArrivingText;

  /** `isJson`: the body is only checked and passed on. */
  constructor(request: FastifyRequest, isJson: boolean, bytesMax: number) {
    this.#request = request;
    this.#isJson = isJson;
    this.#bytesMax = Math.min(announced(request), bytesMax);
    this.#body = new Joined(this.#bytesMax);
  }

  get length(): number {
    return this.#body.length;
  }

  add(piece: Buffer): void {
    this.#body.add(piece);
    const { countedBody } = this.#request;
    const isSmall = this.length <= limits.bodyBytesSmall;
    if (isSmall || !this.#isJson || !countedBody || this.#body instanceof ArrivingText) return;
    const text = new ArrivingText(this.#bytesMax);
    text.add(this.#body.whole());
    countedBody.text = text;
    this.#body = text;
  }

  whole(): ReceivedText {
    return this.#body instanceof Joined ? this.#body.whole() : this.#body;
  }
}

/** Reads a body piece by piece, a large one at the common pace, until it ends or `hear` returns an error. */
function follow(
  request: FastifyRequest,
  payload: Readable,
  hear: (piece: Buffer) => Error | undefined,
  over: (error: Error | null) => void,
): void {
  const { countedBody } = request;
  const isLarge = announced(request) > limits.bodyBytesUnpaced;
  const end = (error: Error | null) => {
    payload.off("data", take);
    countedBody?.end();
    over(error);
  };
  const take = (piece: Buffer) => {
    const { length } = piece;
    const error = countedBody?.count(length) === false ? tooManyBodies() : hear(piece);
    if (error) end(error);
    else if (isLarge) readPace.count(payload, length, countedBody);
  };
  const whole = () => end(null);
  countedBody?.begin(() => payload.off("data", take).off("end", whole).resume());
  payload.on("data", take);
  payload.once("end", whole);
  payload.on("error", (error) => end(Object.assign(error, { statusCode: 400 })));
}

/** Reads a body up to the route's limit. `isJson`: it is only checked and passed on. */
function readBounded(
  request: FastifyRequest,
  payload: Readable,
  isJson: boolean,
  done: (error: Error | null, body?: ReceivedText) => void,
): void {
  const bytesMax = request.routeOptions.bodyLimit ?? 0;
  const length = announced(request);
  if (length !== Number.POSITIVE_INFINITY && length > bytesMax) {
    done(bodyTooLarge(bytesMax));
    return;
  }
  const body = new Arriving(request, isJson, bytesMax);
  const hear = (piece: Buffer) => {
    if (body.length + piece.length > bytesMax) return bodyTooLarge(bytesMax);
    body.add(piece);
    return undefined;
  };
  follow(request, payload, hear, (error) => (error ? done(error) : done(null, body.whole())));
}

/** Accepts bodies as bytes, under any content type. */
export function takeBytes(app: FastifyInstance): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("*", (request, payload, done) => readBounded(request, payload, true, done));
}

/** Accepts bodies as text, parsed by `parse`, which may throw a refusal, in their requests' rooms. */
export function takeText(app: FastifyInstance, parse: (text: string) => unknown): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("*", async (request: FastifyRequest, payload: Readable) => {
    const body = await new Promise<ReceivedText | undefined>((resolve, reject) => {
      readBounded(request, payload, false, (error, whole) => (error ? reject(error) : resolve(whole)));
    });
    await request.room.enter(body?.length ?? 0);
    return request.room.work(() => parse(String(body)));
  });
}

/** Discards bodies of routes that take none, whatever their content type: clients send empty POSTs labelled as JSON. */
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
 * Accepts a worker's result and never refuses it: keeps up to `bytesMax`, counts up to the hard limit, and ignores the
 * rest. `isJson`: it is only checked and passed on.
 */
export function takeWords(app: FastifyInstance, bytesMax: number, isJson: boolean): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("*", (request, payload, done) => {
    let body: Arriving | undefined = new Arriving(request, isJson, bytesMax);
    let bytes = 0;
    let isOver = false;
    const hear = (piece: Buffer) => {
      bytes += piece.length;
      if (bytes > bytesMax) body = undefined;
      else body?.add(piece);
      if (bytes > limits.outputBytesHard && !isOver) {
        isOver = true;
        done(null, undefined);
      }
      // already replied: the rest is discarded, within bounds
      if (bytes > limits.outputBytesHard + limits.lingerBytesMax) payload.destroy();
      return undefined;
    };
    follow(request, payload, hear, (error) => isOver || done(error, body?.whole()));
  });
}
