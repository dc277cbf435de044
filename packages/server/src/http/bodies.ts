import { Transform } from "node:stream";
import type { FastifyInstance } from "fastify";
import { Refusal } from "../errors.js";
import { limits } from "../limits.js";
import { paced } from "./pace.js";

declare module "fastify" {
  interface FastifyRequest {
    /** The body is stored or refused: what it counted is free again, though the answer may take long. */
    releaseBody?: () => void;
  }
}

/** Bytes of large bodies that are being received or stored: clients' and workers' apart, so that neither refuses the other. */
const inFlight = { clients: 0, workers: 0 };

/**
 * Counts the bytes of large bodies as they arrive, until `releaseBody` or until the answer is written; too many at once are
 * refused for a moment. What was only announced is not counted: an idle upload holds up nobody.
 */
export function countBodies(app: FastifyInstance, from: keyof typeof inFlight): void {
  const most = from === "clients" ? limits.bodiesBytesMax : limits.wordsBytesMax;
  app.addHook("preParsing", async (request, reply, payload) => {
    const length = request.headers["content-length"];
    if (length !== undefined && Number(length) <= limits.bodyBytesSmall) return payload;
    let held = 0;
    let isCounting = true;
    request.releaseBody = () => {
      isCounting = false; // what still comes is read away
      inFlight[from] -= held;
      held = 0;
    };
    reply.raw.once("close", request.releaseBody);
    const counter = new Transform({
      transform(chunk: Buffer, _encoding, done) {
        if (isCounting && inFlight[from] + chunk.length > most) return done(tooMany());
        if (isCounting) {
          inFlight[from] += chunk.length;
          held += chunk.length;
        }
        paced(chunk.length, () => done(null, chunk));
      },
    });
    counter.on("error", () => {}); // the route may have refused the body, and listen no more
    payload.on("error", (error) => counter.destroy(error));
    return payload.pipe(counter);
  });
}

const tooMany = () =>
  new Refusal("UNAVAILABLE", "Too many large bodies are on their way; try again in a second.", {
    retryAfterSeconds: 1,
  });

/** Bodies as bytes, under any content type: the route reads them. */
export function takeBytes(app: FastifyInstance): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("*", { parseAs: "buffer" }, (_request, body, done) => done(null, body));
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

/** A worker's word: kept up to `bytesMax`, counted up to the hard limit, where we stop to listen; never refused. */
export function takeWords(app: FastifyInstance, bytesMax: number): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("*", { bodyLimit: limits.outputBytesHard + 1 }, (_request, payload, done) => {
    let kept: Buffer[] | undefined = [];
    let bytes = 0;
    let over = false;
    payload.on("data", (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes > bytesMax) kept = undefined;
      else kept?.push(chunk);
      if (bytes > limits.outputBytesHard && !over) {
        over = true;
        done(null, undefined);
      }
      // it is answered already: what still comes is read away, within bounds
      if (bytes > limits.outputBytesHard + limits.lingerBytesMax) payload.destroy();
    });
    payload.on("end", () => over || done(null, kept && Buffer.concat(kept)));
    payload.on("error", (error: Error) => over || done(error));
  });
}
