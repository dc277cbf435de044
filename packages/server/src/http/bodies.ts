import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { Refusal } from "../errors.js";
import { limits } from "../limits.js";

let bytesInFlight = 0;

/** Counts a large body until its answer is written: many at once are refused for a moment, so that memory stays bounded. */
export function reserveBody(request: FastifyRequest, reply: FastifyReply, bytesMax: number): void {
  const length = request.headers["content-length"];
  const bytes = Math.min(length === undefined ? bytesMax : Number(length), bytesMax);
  if (bytes <= limits.bodyBytesSmall || request.method === "GET") return;
  if (bytesInFlight + bytes > limits.bodiesBytesMax) {
    throw new Refusal("UNAVAILABLE", "Too many large bodies are on their way; try again in a second.", {
      retryAfterSeconds: 1,
    });
  }
  bytesInFlight += bytes;
  reply.raw.once("close", () => {
    bytesInFlight -= bytes;
  });
}

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
        payload.pause();
        done(null, undefined);
      }
    });
    payload.on("end", () => over || done(null, kept && Buffer.concat(kept)));
    payload.on("error", (error: Error) => over || done(error));
  });
}
