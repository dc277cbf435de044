import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { Refusal } from "../errors.js";
import { limits } from "../limits.js";

declare module "fastify" {
  interface FastifyRequest {
    /** The body is stored: what it counted is free again, though the answer may take long. */
    releaseBody?: () => void;
  }
}

/** Bytes of large bodies that are being received or stored: clients' and workers' apart, so that neither refuses the other. */
const inFlight = { clients: 0, workers: 0 };

/** Counts a large body until `release`, or until its connection closes; too many at once are refused for a moment. */
export function reserveBody(
  request: FastifyRequest,
  reply: FastifyReply,
  from: keyof typeof inFlight,
  bytesMax: number,
): void {
  const length = request.headers["content-length"];
  const bytes = Math.min(length === undefined ? bytesMax : Number(length), bytesMax);
  if (bytes <= limits.bodyBytesSmall || request.method === "GET") return;
  const most = from === "clients" ? limits.bodiesBytesMax : limits.wordsBytesMax;
  if (inFlight[from] + bytes > most) {
    throw new Refusal("UNAVAILABLE", "Too many large bodies are on their way; try again in a second.", {
      retryAfterSeconds: 1,
    });
  }
  inFlight[from] += bytes;
  let isHeld = true;
  request.releaseBody = () => {
    if (isHeld) inFlight[from] -= bytes;
    isHeld = false;
  };
  reply.raw.once("close", request.releaseBody);
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
